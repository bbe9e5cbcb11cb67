from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copy

import pytest

from support.stores import ADDRESS, STORES, Open
from trivet.store.relational.store import RelationalStore as Store


@pytest.fixture(scope="session")
def new_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new SQLite store; creating one takes nine times as long as copying it."""
    folder = tmp_path_factory.mktemp("new")
    STORES["sqlite"](folder).close()
    (file,) = folder.glob("*.db")
    return file


@pytest.fixture(params=sorted(STORES))
def open_store(request: pytest.FixtureRequest, tmp_path: Path, new_file: Path) -> Iterator[Open]:
    """Open the same store repeatedly, as several processes would."""
    opened: list[Store] = []
    server = request.getfixturevalue("postgres") if request.param == "postgres" else None
    if server is not None:
        (tmp_path / ADDRESS).write_text(server.database())

    def open_it() -> Store:
        if request.param == "sqlite" and not (tmp_path / new_file.name).exists():
            copy(new_file, tmp_path)
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
