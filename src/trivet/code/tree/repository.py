"""What is indexed: a folder, and what its index is named by.

Where the index of a root lies: in the user's cache folder, because it can be made again.

Asks the git program about a repository without letting the repository run anything.

A repository that came as an archive brings its own `.git/config`, which may name programs. `ls-files` would run these:
`core.fsmonitor`, the `clean` and `process` commands of filters (to compare a touched file with its blob), and what a
partial clone fetches missing objects with. All of them are switched off here; so are hooks and the pager.

Watches a root: which paths to look at again after each burst of changes.
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


_FATAL = 128  # git's status where it cannot answer, after those answers that it could give


class Root(msgspec.Struct, frozen=True, kw_only=True):
    """What is indexed. `folder` and `identity` are real paths, with no symbolic link in them.

    :param folder: the top level of the worktree that the asked folder lies in; without git, the asked folder.
    :param prefix: the asked folder's path below it, with a slash at its end; empty if it is the same.
    :param identity: names the index: git's common directory, which all worktrees share; without git, the folder.
    :param git: whether git can be asked which files there are.
    :param refusal: why not, where the folder is a worktree: there is no git program, or it does not want to.
    :param digest: what this repository's blob ids are made by: `sha1`, in a few repositories `sha256`.
    """

    folder: Path
    prefix: str
    identity: str
    git: bool
    refusal: str = ""
    digest: str = "sha1"


def no_worktree(folder: Path) -> str:
    return (
        f"{folder} is a git directory without files of its own. Give a worktree of it: `git worktree list` names those "
        "there are, and `git worktree add FOLDER BRANCH` makes one."
    )


def checked_digest(top: Path) -> str:
    """How git makes blob ids here. Git must mean the same top level: a configuration may name a folder elsewhere."""
    questions = ("--is-bare-repository", "--show-object-format", "--show-toplevel")
    answers = os.fsdecode(ask(top, "rev-parse", *questions, accept=(0, _FATAL))).split("\n", 2)
    bare, digest, named = (*answers, "", "")[:3]
    if bare == "true":
        raise InvalidInput(no_worktree(top))
    if not bare:
        ask(
            top, "rev-parse", "--git-dir"
        )  # fails again, and says why in git's own words, as that it is another user's
    if os.path.realpath(named.removesuffix("\n")) != str(top):
        raise GitRefused(f"git does not take {top} for the top level of a worktree")
    return digest


# Where the indexes lie instead, as for tests.
VARIABLE = "TRIVET_CODE_CACHE"
_DIGITS = 12
_LONGEST_NAME = 60
_NOT_PLAIN = re.compile(r"[^\w.-]")


def index_path(root: Root) -> Path:
    """One file for each repository; its folder is made. The name is for people, the digits tell apart."""
    digits = hashlib.sha256(os.fsencode(root.identity)).hexdigest()[:_DIGITS]
    return private_folder(_folder()) / f"{_name(root)}-{digits}.db"


def _folder() -> Path:
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser() if named else cache_folder() / "code"


def _name(root: Root) -> str:
    """The same for all worktrees: the folder that git's common directory lies in, or the bare repository's own."""
    identity = Path(root.identity)
    folder = identity.parent if identity.name == ".git" else identity
    return _NOT_PLAIN.sub("_", folder.name)[:_LONGEST_NAME] or "root"


# A repository may make git wait for ever, as by an excludes file that is a pipe.
TIMEOUT_SECONDS = 120
_OFF = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}")
_KEPT = frozenset(
    ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES")
)
_NO_SUCH_KEY = 1  # git config's status where nothing matches


class GitRefused(Exception):
    """Git is not there, does not want this repository, or cannot be asked safely. Files are then found without it."""


def ask(folder: Path, *arguments: str, accept: Sequence[int] = (0,), given: bytes = b"") -> bytes:
    """What git prints when it is run in a folder.

    :param accept: the statuses it may end with.
    :param given: what it reads from its standard input.
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
        raise GitRefused(f"git cannot be asked ({error})") from None
    if done.returncode not in accept:
        raise GitRefused(
            done.stderr.decode(errors="replace").strip()
            or f"git ended with status {done.returncode}"
        )
    return done.stdout


def git_list(
    folder: Path, *arguments: str, accept: Sequence[int] = (0,), given: bytes = b""
) -> list[str]:
    """What git prints with a NUL after each. Names that are not UTF-8 come as the system has them in Python."""
    return os.fsdecode(ask(folder, *arguments, accept=accept, given=given)).split("\0")[:-1]


def without_filters(folder: Path) -> list[str]:
    """Options that switch off each filter which the configuration names: there is none for all of them."""
    found = (0, _NO_SUCH_KEY)
    keys = git_list(
        folder, "config", "-z", "--name-only", "--get-regexp", r"^filter\.", accept=found
    )
    names = {key.removeprefix("filter.").rpartition(".")[0] for key in keys}
    if any("=" in name for name in names):  # such a name ends at its first = on the command line
        raise GitRefused("a filter in its configuration has a name that cannot be switched off")
    return [
        part for name in sorted(names) for setting in _nothing(name) for part in ("-c", setting)
    ]


def _nothing(name: str) -> Iterator[str]:
    yield f"filter.{name}.clean="
    yield f"filter.{name}.process="
    yield f"filter.{name}.required=false"


def _environment() -> dict[str, str]:
    """The user's, without what a git hook that runs us would set: it names another repository or index."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT
    }
    return {
        **kept,
        "GIT_OPTIONAL_LOCKS": "0",  # never write, not even a refreshed index
        "GIT_NO_LAZY_FETCH": "1",  # where git is too old for this one, no protocol is allowed
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


# A saved file must be found within a tenth of a second; editors save in several steps that take a few milliseconds.
QUIET_MILLISECONDS = 20
# A checkout changes thousands of files: they come in few bursts.
MAX_DELAY_MILLISECONDS = 1_000
# How often the wait is interrupted to see whether it should stop.
POLL_MILLISECONDS = 250
# With more paths than this, or a changed ignore file, the whole root is looked at.
MAX_CHANGED_PATHS = 200
EVERYTHING = frozenset(("",))


def watch(root: Root, stop: Event | None = None) -> Iterator[frozenset[str]]:
    """First EVERYTHING, once the watch has begun, for what changed before; then the paths of each burst of changes.

    The paths are from the root, as `list_tree` takes them for `only`. One may be a file, also one that is gone or that
    git ignores, or a folder, of which everything below may be another.
    """
    import watchfiles  # here, because a search that watches nothing should not wait for it

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
    """Whether a change may be one of the tree. Without a look at the disk: builds change files by the thousand."""
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
    """Without what git ignores: a build may write such files for minutes. The whole root if there are too many."""
    if root.git and paths != EVERYTHING:
        # By the patterns alone first, because to read the index of a large repository takes as long as all the rest:
        # only what they ignore may be tracked nevertheless.
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
    except GitRefused:  # as for a path inside a submodule: the listing finds out
        return frozenset()
