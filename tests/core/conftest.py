from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trivet import Trivet

from .servers import WordEmbedder

Opened = Callable[..., Trivet]


@pytest.fixture
def open_trivet(path: Path) -> Iterator[Opened]:
    """Opens the test's store, by words alone and with no thread unless told otherwise, as often as it is called."""
    opened: list[Trivet] = []

    def open_it(where: Path | None = None, **overrides: Any) -> Trivet:
        settings: dict[str, Any] = {"embedder": "none", "background": False} | overrides
        opened.append(Trivet.open(where or path, **settings))
        return opened[-1]

    yield open_it
    for one in opened:
        one.close()


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
