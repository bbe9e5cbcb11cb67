"""The client works the same whether the server uses a file or PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.postgres_server import PostgresServer
from support.served_stores import Houses, key_of
from trivet import Trivet

from .tcp_proxy import proxied


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "memory.db")
    postgres: PostgresServer = request.getfixturevalue("postgres")
    return postgres.database()


def test_memory_life_cycle(running: Houses, store: str) -> None:
    with running.at(store, embedder="none") as (address, house), proxied(address) as network:
        ana, ben = (
            Trivet.open(network.address, key=key_of(house, user)) for user in ("ana", "ben")
        )
        with ana, ben:
            network.lose_answers = 1
            first = ana.remember("The relay listens on port 7001.", tags=["net"]).id
            second = ana.remember("The relay listens on port 7002.", tags=["net"]).id
            ana.link(second, "supersedes", first)
            assert [hit.id for hit in ana.recall("relay port").hits] == [second]
            assert ben.list().total == 0
            network.lose_answers = 1
            ana.share("ben", tag="net")
            assert [hit.id for hit in ben.recall("relay port").hits] == [second]
            assert ana.shares() == ben.shares()
            network.lose_answers = 1
            ana.unshare("ben", tag="net")
            assert ben.recall("relay port").hits == ()
            network.lose_answers = 1
            assert ana.edit(second, content="The relay is gone.", if_revision=1).revision == 2
            assert ben.import_(ana.export()).stored == 2, "as his own copies"
            assert {memory.owner for memory in ben.list().memories} == {"ben"}
            assert ana.stats().memories == {"active": 1, "superseded": 1}
