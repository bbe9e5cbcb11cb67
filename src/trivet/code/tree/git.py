"""Asks the git program about a repository without letting the repository run anything.

A repository that came as an archive brings its own `.git/config`, which may name programs. `ls-files` would run these:
`core.fsmonitor`, the `clean` and `process` commands of filters (to compare a touched file with its blob), and what a
partial clone fetches missing objects with. All of them are switched off here; so are hooks and the pager.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

# A repository may make git wait for ever, as by an excludes file that is a pipe.
TIMEOUT_SECONDS = 120
_OFF = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}")
_KEPT = frozenset(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES"))
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
        raise GitRefused(done.stderr.decode(errors="replace").strip() or f"git ended with status {done.returncode}")
    return done.stdout


def git_list(folder: Path, *arguments: str, accept: Sequence[int] = (0,), given: bytes = b"") -> list[str]:
    """What git prints with a NUL after each. Names that are not UTF-8 come as the system has them in Python."""
    return os.fsdecode(ask(folder, *arguments, accept=accept, given=given)).split("\0")[:-1]


def without_filters(folder: Path) -> list[str]:
    """Options that switch off each filter which the configuration names: there is none for all of them."""
    found = (0, _NO_SUCH_KEY)
    keys = git_list(folder, "config", "-z", "--name-only", "--get-regexp", r"^filter\.", accept=found)
    names = {key.removeprefix("filter.").rpartition(".")[0] for key in keys}
    if any("=" in name for name in names):  # such a name ends at its first = on the command line
        raise GitRefused("a filter in its configuration has a name that cannot be switched off")
    return [part for name in sorted(names) for setting in _nothing(name) for part in ("-c", setting)]


def _nothing(name: str) -> Iterator[str]:
    yield f"filter.{name}.clean="
    yield f"filter.{name}.process="
    yield f"filter.{name}.required=false"


def _environment() -> dict[str, str]:
    """The user's, without what a git hook that runs us would set: it names another repository or index."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
    return {
        **kept,
        "GIT_OPTIONAL_LOCKS": "0",  # never write, not even a refreshed index
        "GIT_NO_LAZY_FETCH": "1",  # where git is too old for this one, no protocol is allowed
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
