"""The client works the same whether the server uses a file or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.postgres_server import PostgresServer
from support.served_stores import ServedStores, key_of
from trivet import Trivet

from .tcp_proxy import TcpProxy, proxied


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "memory.db")
    postgres: PostgresServer = request.getfixturevalue("postgres")
    return postgres.database()


@pytest.fixture
def connected(running: ServedStores, store: str) -> Iterator[tuple[TcpProxy, Trivet, Trivet]]:
    """The network and the clients of two users, ana and ben."""
    with (
        running.at(store, embedder="none") as (address, tenants),
        proxied(address) as network,
        Trivet.open(network.address, key=key_of(tenants, "ana")) as ana,
        Trivet.open(network.address, key=key_of(tenants, "ben")) as ben,
    ):
        yield network, ana, ben


def test_memory_life_cycle(connected: tuple[TcpProxy, Trivet, Trivet]) -> None:
    network, ana, ben = connected
    network.lose_answers = 1  # the answer is lost, so the client retries
    first = ana.remember("The relay listens on port 7001.").id
    second = ana.remember("The relay listens on port 7002.").id
    ana.link(second, "supersedes", first)
    assert [hit.id for hit in ana.recall("relay port").hits] == [second]
    assert ben.list().total == 0
    network.lose_answers = 1
    assert ana.edit(second, content="The relay is gone.", if_revision=1).revision == 2
    assert ana.stats().memories == {"active": 1, "superseded": 1}


def test_sharing(connected: tuple[TcpProxy, Trivet, Trivet]) -> None:
    network, ana, ben = connected
    id = ana.remember("The relay listens on port 7002.", tags=["net"]).id
    network.lose_answers = 1  # the answer is lost, so the client retries
    ana.share("ben", tag="net")
    assert [hit.id for hit in ben.recall("relay port").hits] == [id]
    assert ana.shares() == ben.shares()
    network.lose_answers = 1
    ana.unshare("ben", tag="net")
    assert ben.recall("relay port").hits == ()


def test_import_of_another_users_export(connected: tuple[TcpProxy, Trivet, Trivet]) -> None:
    _, ana, ben = connected
    first, second = (ana.remember(f"The relay listens on port {port}.").id for port in (7001, 7002))
    ana.link(second, "supersedes", first)
    assert ben.import_(ana.export()).stored == 2, "ben's import did not store both as new memories"
    assert {memory.owner for memory in ben.list().memories} == {"ben"}
