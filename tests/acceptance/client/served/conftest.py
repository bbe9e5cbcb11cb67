"""Tests of the embedded object also pass for a client of a real server."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.served_stores import ServedStores, serve_stores
from support.store_fixtures import Opened, trivet
from support.word_embedder import embedder, hybrid
from trivet import Trivet

__all__ = ["embedder", "hybrid", "trivet"]


@pytest.fixture(scope="session")
def served_stores() -> Iterator[ServedStores]:
    with serve_stores() as opened:
        yield opened


@pytest.fixture
def open_trivet(path: Path, served_stores: ServedStores, empty_store: Path) -> Iterator[Opened]:
    """Open like `support.store_fixtures`, but through a server."""
    with ExitStack() as stack:

        def open_it(where: Path | None = None, **overrides: Any) -> Trivet:
            settings: dict[str, Any] = {"embedder": "none", "background": False} | overrides
            file = where or path
            if file == path and not file.exists():
                shutil.copy(empty_store, file)
            return stack.enter_context(served_stores.open(file, **settings))

        yield open_it
