"""File changes are reported as the paths to list again."""

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
    """Bursts yielded by the watch of a repository after its start."""
    stop = threading.Event()
    found = watch(find_root(repository), stop)
    assert next(found) == EVERYTHING
    yield found
    stop.set()
    assert list(found) == []


def until(bursts: Iterator[frozenset[str]], expected: set[str]) -> set[str]:
    """Collect paths until all expected ones arrive; one change may take several bursts."""
    seen: set[str] = set()
    while not expected <= seen:
        seen |= next(bursts)
    return seen


def test_saved_files_are_reported_and_ignored_ones_are_not(
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
