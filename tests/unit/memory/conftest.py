from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.served_stores import Houses, houses
from support.word_embedder import WordEmbedder
from trivet import Trivet

Opened = Callable[..., Trivet]


# What these tests say of the embedded object is true of a client of a server too, and is tried with both.
ALSO_SERVED = {
    "test_concepts",
    "test_duplicates",
    "test_graph_view",
    "test_links",
    "test_memories",
    "test_portable",
    "test_recall",
    "test_sensitive",
    "test_why_not",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "open_trivet" in metafunc.fixturenames:
        served = metafunc.module.__name__.rpartition(".")[2] in ALSO_SERVED
        embedded_only = metafunc.definition.get_closest_marker("embedded_only")
        homes = ["embedded", "served"] if served and not embedded_only else ["embedded"]
        metafunc.parametrize("open_trivet", homes, indirect=True)


@pytest.fixture(scope="session")
def served_houses() -> Iterator[Houses]:
    with houses() as opened:
        yield opened


@pytest.fixture
def open_trivet(path: Path, request: pytest.FixtureRequest) -> Iterator[Opened]:
    """Opens the test's store, by words alone and with no thread unless told otherwise, as often as it is called."""
    with ExitStack() as stack:

        def open_it(where: Path | None = None, **overrides: Any) -> Trivet:
            settings: dict[str, Any] = {"embedder": "none", "background": False} | overrides
            if request.param == "embedded":
                return stack.enter_context(Trivet.open(where or path, **settings))
            served: Houses = request.getfixturevalue("served_houses")
            return stack.enter_context(served.open(where or path, **settings))

        yield open_it


@pytest.fixture
def trivet(open_trivet: Opened) -> Trivet:
    return open_trivet()


@pytest.fixture
def embedder() -> Iterator[WordEmbedder]:
    server = WordEmbedder()
    yield server
    server.stop()


@pytest.fixture
def hybrid(open_trivet: Opened, embedder: WordEmbedder) -> Trivet:
    """A store with both legs, whose vectors come from `embedder`."""
    return open_trivet(embedder=embedder.spec())
