from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.stores import ADDRESS, STORES, Open
from trivet.store.relational.store import RelationalStore as Store


@pytest.fixture(params=sorted(STORES))
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Open the same store repeatedly, as several processes would."""
    opened: list[Store] = []
    server = request.getfixturevalue("postgres") if request.param == "postgres" else None
    if server is not None:
        (tmp_path / ADDRESS).write_text(server.database())

    def open_it() -> Store:
        opened.append(STORES[request.param](tmp_path))
        return opened[-1]

    yield open_it
    for store in opened:
        store.close()
    if server is not None:
        server.drop((tmp_path / ADDRESS).read_text())


@pytest.fixture
def store(open_store: Open) -> Store:
    return open_store()
