"""Fixtures that open a test's store."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.waiting import in_threads
from trivet import Trivet

Opened = Callable[..., Trivet]
# A folder of the checkout that git ignores, for files that tests may keep between runs.
ARTIFACTS = Path(__file__).resolve().parents[2] / ".artifacts"


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A newly created store.

    Most tests start with one, and copying it takes a tenth of the time of creating it.
    """
    file = tmp_path_factory.mktemp("empty") / "memory.db"
    with Trivet.open(file, embedder="none", background=False):
        return file


@pytest.fixture
def open_trivet(path: Path, empty_store: Path) -> Iterator[Opened]:
    """Open the test's store any number of times, by default without vectors and threads."""
    with ExitStack() as stack:

        def open_it(where: Path | None = None, **overrides: Any) -> Trivet:
            settings: dict[str, Any] = {"embedder": "none", "background": False} | overrides
            file = where or path
            if file == path and not file.exists():
                shutil.copy(empty_store, file)
            return stack.enter_context(Trivet.open(file, **settings))

        yield open_it


def write_and_recall_at_once(trivet: Trivet, threads: int, turns: int) -> None:
    """Check that each thread finds what it has just written while the others write."""

    def work(number: int) -> None:
        for turn in range(turns):
            id = trivet.remember(f"zebra thread{number} turn{turn}").id
            assert id in {hit.id for hit in trivet.recall(f"thread{number} turn{turn}").hits}

    in_threads(threads, work)
    assert trivet.list().total == threads * turns


@pytest.fixture
def trivet(open_trivet: Opened) -> Trivet:
    return open_trivet()


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's configuration, replaced by the test's own."""
    folder = tmp_path / "configuration"
    monkeypatch.setenv("TRIVET_CONFIG", str(folder / "trivet.toml"))
    return folder


# Alternative names used by the tests of the inbox, capture and tidying.
@pytest.fixture
def opened(open_trivet: Opened) -> Opened:
    return open_trivet


@pytest.fixture
def memory(open_trivet: Opened) -> Trivet:
    return open_trivet()
