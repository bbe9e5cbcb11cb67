"""Which paths are looked at again when files change."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from trivet.code.tree import find_root, watch
from trivet.code.tree.repository import EVERYTHING

from .conftest import write


@pytest.fixture
def bursts(repository: Path) -> Iterator[Iterator[frozenset[str]]]:
    """What the watch of a repository yields after it has begun."""
    stop = threading.Event()
    found = watch(find_root(repository), stop)
    assert next(found) == EVERYTHING
    yield found
    stop.set()
    assert list(found) == []


def until(bursts: Iterator[frozenset[str]], expected: set[str]) -> set[str]:
    """All that is told until the expected paths are: on a busy machine one change may come in several bursts."""
    told: set[str] = set()
    while not expected <= told:
        told |= next(bursts)
    return told


def test_a_saved_file_is_told_and_what_git_ignores_is_not(
    repository: Path, bursts: Iterator[frozenset[str]]
) -> None:
    write(
        repository,
        {"built/made.py": "x\n", "debug.log": "x\n", "logo.png": "x", ".git/note": "x\n"},
    )
    (repository / "node_modules").mkdir()
    write(repository, {"node_modules/dependency.js": "x\n", "lib/retry.py": "changed = 1\n"})
    assert until(bursts, {"lib/retry.py"}) == {"lib/retry.py"}
    (repository / "lib/deep/wait.py").unlink()
    assert until(bursts, {"lib/deep/wait.py"}) <= {"lib/retry.py", "lib/deep/wait.py"}
    (repository / "lib").rename(repository / "library")
    until(bursts, {"lib", "library"})
    write(repository, {".gitignore": ""})
    until(bursts, set(EVERYTHING))
