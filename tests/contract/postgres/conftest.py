from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.postgres_server import PostgresServer
from trivet.store.postgres import PostgresStore, Server


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    """A database that already has the schema."""
    made = postgres.database()
    yield made
    postgres.drop(made)


@pytest.fixture
def empty_url(postgres: PostgresServer) -> Iterator[str]:
    """A database with nothing but pgvector in it."""
    made = postgres.empty_database()
    yield made
    postgres.drop(made)


@pytest.fixture
def server(url: str) -> Iterator[Server]:
    opened = Server(url)
    yield opened
    opened.close()


@pytest.fixture
def store(server: Server) -> PostgresStore:
    return PostgresStore(server)


@pytest.fixture
def vector_search(postgres: PostgresServer) -> None:
    """Skip the test unless the server itself can compare vectors."""
    if not postgres.compares_vectors:
        pytest.skip(
            "this pgvector was built with instructions that this processor lacks: the server dies of them"
        )
