from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from embed.conftest import Endpoint, Reply, endpoint
from trivet import Trivet

from .tiny import write_reranker

__all__ = ["Endpoint", "Reply", "endpoint"]

Opened = Callable[..., Trivet]

# By its words the first comes first; the tiny reranker loves the last.
NOTES = ("zebra relay listens quietly", "zebra relay", "the zebra sleeps", "a zebra and an emerald")


@pytest.fixture
def open_trivet(path: Path) -> Iterator[Opened]:
    """Opens the test's store, by words alone and with no thread unless told otherwise, as often as it is called."""
    opened: list[Trivet] = []

    def open_it(**overrides: Any) -> Trivet:
        settings: dict[str, Any] = {"embedder": "none", "background": False} | overrides
        opened.append(Trivet.open(path, **settings))
        return opened[-1]

    yield open_it
    for one in opened:
        one.close()


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_reranker(tmp_path / "tiny")


@pytest.fixture
def reranking(open_trivet: Opened, tiny: Path) -> Trivet:
    """A store of the notes above, whose reranker is the tiny one."""
    trivet = open_trivet(rerank=f"folder:{tiny}")
    for note in NOTES:
        trivet.remember(note)
    return trivet
