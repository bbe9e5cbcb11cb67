from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.http_server import Client, Served, served, settings_for


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server shared by all tests of a file."""
    with served(
        settings_for(tmp_path_factory.mktemp("store") / "memory.db", changes="words")
    ) as running:
        yield running


@pytest.fixture(scope="module")
def ana(server: Served) -> Client:
    return server.client("ana")
