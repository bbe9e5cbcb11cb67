"""The root of a tree: its index file, safe questions to git, and a watch for changes.

A repository from an archive brings its own `.git/config`, which may name programs that `ls-files`
would run. This module disables them, and hooks and the pager.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from threading import Event
from typing import TYPE_CHECKING

import msgspec

from trivet.code.tree.exclusions import GITIGNORE, THIRD_PARTY_FOLDERS, TRIVET_IGNORE, file_reason
from trivet.common.files import private_folder
from trivet.errors import InvalidInput
from trivet.settings import cache_folder

if TYPE_CHECKING:
    from watchfiles import Change


_FATAL = 128  # git's exit status if an option fails; those before it are answered


class Root(msgspec.Struct, frozen=True, kw_only=True):
    """A folder to index. `folder` and `identity` are real paths without symbolic links.

    Attributes:
        folder: The top of the worktree around the requested folder; without git, that folder.
        prefix: The requested folder's path below it, ending with a slash; or empty.
        identity: Names the index: git's common directory; without git, the folder.
        refusal: Why git cannot be used, if the folder is a worktree.
        digest: The hash of blob ids: `sha1`, rarely `sha256`.
    """

    folder: Path
    prefix: str
    identity: str
    git: bool
    refusal: str = ""
    digest: str = "sha1"


def no_worktree(folder: Path) -> str:
    return (
        f"{folder} is a git directory without files of its own. Give one of its worktrees "
        "(`git worktree list`), or create one with `git worktree add FOLDER BRANCH`."
    )


def checked_digest(top: Path) -> str:
    """Return the hash of blob ids.

    Git must agree on the top: its configuration may name another.
    """
    questions = ("--is-bare-repository", "--show-object-format", "--show-toplevel")
    answers = os.fsdecode(ask(top, "rev-parse", *questions, accept=(0, _FATAL))).split("\n", 2)
    bare, digest, named = (*answers, "", "")[:3]
    if bare == "true":
        raise InvalidInput(no_worktree(top))
    if not bare:
        ask(top, "rev-parse", "--git-dir")  # fails with git's reason, such as another owner
    if os.path.realpath(named.removesuffix("\n")) != str(top):
        raise GitRefused(f"git does not accept {top} as the top level of a worktree")
    return digest


# Environment variable that overrides the folder for indexes, as in tests.
VARIABLE = "TRIVET_CODE_CACHE"
_DIGITS = 12
_LONGEST_NAME = 60
_NOT_PLAIN = re.compile(r"[^\w.-]")


def index_path(root: Root) -> Path:
    digits = hashlib.sha256(os.fsencode(root.identity)).hexdigest()[:_DIGITS]
    return private_folder(_folder()) / f"{_name(root)}-{digits}.db"


def _folder() -> Path:
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser() if named else cache_folder() / "code"


def _name(root: Root) -> str:
    """Name the index for people, the same for all worktrees; digits make it unique."""
    identity = Path(root.identity)
    folder = identity.parent if identity.name == ".git" else identity
    return _NOT_PLAIN.sub("_", folder.name)[:_LONGEST_NAME] or "root"


# A repository can make git wait forever, for example with an excludes file that is a pipe.
TIMEOUT_SECONDS = 120
_OFF = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}")
_KEPT = frozenset(
    ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES")
)
_NO_SUCH_KEY = 1  # git config's exit status if nothing matches


class GitRefused(Exception):
    """Git is missing, rejects this repository, or is unsafe: list files without it."""


def ask(folder: Path, *arguments: str, accept: Sequence[int] = (0,), given: bytes = b"") -> bytes:
    """Run git and return its output.

    `accept` lists the exit statuses that are no error; `given` is standard input.
    """
    program = shutil.which("git")
    if program is None:
        raise GitRefused("there is no git program on the PATH")
    off = (part for setting in _OFF for part in ("-c", setting))
    try:
        done = subprocess.run(
            [program, "--no-pager", *off, *arguments],
            cwd=folder,
            env=_environment(),
            input=given,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitRefused(f"git could not be run ({error})") from None
    if done.returncode not in accept:
        raise GitRefused(
            done.stderr.decode(errors="replace").strip()
            or f"git exited with status {done.returncode}"
        )
    return done.stdout


def git_list(
    folder: Path, *arguments: str, accept: Sequence[int] = (0,), given: bytes = b""
) -> list[str]:
    """Run git and split its output at NUL; names that are not UTF-8 use surrogates."""
    return os.fsdecode(ask(folder, *arguments, accept=accept, given=given)).split("\0")[:-1]


def without_filters(folder: Path) -> list[str]:
    """Return options that disable each configured filter: no option disables all."""
    found = (0, _NO_SUCH_KEY)
    keys = git_list(
        folder, "config", "-z", "--name-only", "--get-regexp", r"^filter\.", accept=found
    )
    names = {key.removeprefix("filter.").rpartition(".")[0] for key in keys}
    if any("=" in name for name in names):  # the command line would cut the name at its first =
        raise GitRefused("its configuration names a filter that cannot be disabled")
    return [
        part for name in sorted(names) for setting in _nothing(name) for part in ("-c", setting)
    ]


def _nothing(name: str) -> Iterator[str]:
    yield f"filter.{name}.clean="
    yield f"filter.{name}.process="
    yield f"filter.{name}.required=false"


def _environment() -> dict[str, str]:
    """Drop what a git hook sets, which points to another index."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT
    }
    return {
        **kept,
        "GIT_OPTIONAL_LOCKS": "0",  # never write, not even a refreshed index
        "GIT_NO_LAZY_FETCH": "1",  # older versions ignore it; the next line allows no protocol
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


# A saved file must be found within 0.1 s; editors save in several steps a few milliseconds apart.
QUIET_MILLISECONDS = 20
# A checkout changes thousands of files, which should arrive in few bursts.
MAX_DELAY_MILLISECONDS = 1_000
# How often the wait checks the stop event.
POLL_MILLISECONDS = 250
# With more changed paths, or a changed ignore file, the whole root is scanned.
MAX_CHANGED_PATHS = 200
EVERYTHING = frozenset(("",))


def watch(root: Root, stop: Event | None = None) -> Iterator[frozenset[str]]:
    """Yield EVERYTHING once the watch has begun, then the paths of each burst of changes.

    A path may be gone or ignored; a folder stands for all below it.
    """
    import watchfiles  # here: a search that watches nothing should not wait for this import

    begun = False
    for found in watchfiles.watch(
        root.folder,
        watch_filter=lambda _, path: _concerns(root.folder, path),
        debounce=MAX_DELAY_MILLISECONDS,
        step=QUIET_MILLISECONDS,
        rust_timeout=POLL_MILLISECONDS,
        yield_on_timeout=True,
        stop_event=stop,
        raise_interrupt=False,
    ):
        if not begun:
            begun = True
            yield EVERYTHING
        elif found and (paths := _not_ignored(root, _paths(root.folder, found))):
            yield paths


def _concerns(folder: Path, path: str) -> bool:
    """Decide without disk access: builds change thousands of files."""
    *above, name = PurePath(path).relative_to(folder).parts or ("",)
    return (
        not any(part == ".git" or part in THIRD_PARTY_FOLDERS for part in (*above, name))
        and file_reason(name) is None
    )


def _paths(folder: Path, found: set[tuple[Change, str]]) -> frozenset[str]:
    paths = frozenset(PurePath(path).relative_to(folder).as_posix() for _, path in found)
    return (
        EVERYTHING
        if any(PurePath(path).name in (GITIGNORE, TRIVET_IGNORE) for path in paths)
        else paths
    )


def _not_ignored(root: Root, paths: frozenset[str]) -> frozenset[str]:
    if root.git and paths != EVERYTHING:
        # Match patterns alone first: reading the index of a large repository takes as long as all
        # the rest, and it matters only for tracked paths that match a pattern.
        paths -= _ignored(root, _ignored(root, paths, "--no-index"))
    return paths if len(paths) <= MAX_CHANGED_PATHS else EVERYTHING


def _ignored(root: Root, paths: frozenset[str], *options: str) -> frozenset[str]:
    if not paths:
        return paths
    some, none = 0, 1
    given = b"\0".join(map(os.fsencode, paths))
    try:
        return frozenset(
            git_list(
                root.folder,
                "check-ignore",
                "-z",
                "--stdin",
                *options,
                accept=(some, none),
                given=given,
            )
        )
    except GitRefused:  # such as a path inside a submodule: the listing handles it
        return frozenset()
