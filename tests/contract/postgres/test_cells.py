"""A tenant moves to another database: nothing is lost, one home at a time, whoever is stopped in the middle of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from contract.postgres.test_tenants import fill, tables
from support.postgres_server import PostgresServer
from support.stores import add, found, memory
from trivet.errors import Moved, Moving
from trivet.store.postgres import PostgresStore, Server
from trivet.store.postgres.cells.moving import move
from trivet.store.postgres.cells.removing import forget_moved

STAGES = ("copying", "catching up", "frozen", "switched", "finishing")
# What is said of where the tenant is, of its models' numbers, and of the files of one database.
DIFFERENT = ("tenant", "embedding_model", "passage", "job", "meta", "change", "directory", "statement")


class Stopped(BaseException):
    """As if the process were killed there: nothing of it runs afterwards."""


def stop_at(stage: str) -> Callable[[str, str], None]:
    def told(now: str, detail: str) -> None:
        if now == stage:
            raise Stopped

    return told


def quietly(stage: str, detail: str) -> None:
    """Says nothing."""


def rows(url: str, tenant: str) -> dict[str, list[tuple[str]]]:
    with psycopg.connect(url) as connection:
        connection.execute("SELECT set_config('trivet.tenant', %s, true)", (tenant,))
        names = [name for name in tables(connection) if name not in DIFFERENT]
        return {name: sorted(connection.execute(f"SELECT t::text FROM {name} AS t").fetchall()) for name in names}


@pytest.fixture
def other_url(postgres: PostgresServer) -> Iterator[str]:
    made = postgres.database()
    yield made
    postgres.drop(made)


@pytest.fixture
def other(other_url: str) -> Iterator[Server]:
    opened = Server(other_url, vector_bytes=1 << 20)
    yield opened
    opened.close()


def test_a_move_goes_on_wherever_it_was_stopped(server: Server, other: Server, url: str, other_url: str) -> None:
    old = PostgresStore(server, "acme")
    fill(old, "relay")
    fill(PostgresStore(other, "birch"), "birch")
    theirs = rows(other_url, "birch")
    epoch = old.feed.state()
    written = []
    for number, stage in enumerate(STAGES):
        with pytest.raises(Stopped):
            move(server, other, "acme", stop_at(stage))
        if stage in ("copying", "catching up"):
            written += [memory(f"relay number {number}")]
            add(old, written[-1])
            purged = memory("relay to go")
            add(old, purged)
            old.memories.purge(purged.id)
        with pytest.raises(Moved):
            PostgresStore(other, "acme") if stage != "finishing" else old.memories.stats()
        if stage == "frozen":
            assert {one.id for one in written} <= set(found(old, "relay")), "it is read"
            with pytest.raises(Moving, match="try again"):
                add(old, memory("not now"))
            with pytest.raises(Moving):
                old.usage.note({written[0].id: 1})
    before = rows(url, "acme")
    move(server, other, "acme", quietly)
    new = PostgresStore(other, "acme")
    after = rows(other_url, "acme")
    assert {name for name, one in after.items() if one != before[name]} == set()
    assert rows(other_url, "birch") == theirs, "nobody else is touched"
    assert set(found(PostgresStore(other, "birch"), "relay")) == set()
    state = new.feed.state()
    assert state is not None
    assert epoch is not None
    assert state.epoch != epoch.epoch
    assert epoch.epoch in state.past, "laptops are told that it is another server"
    add(new, memory("relay of the new home"))
    assert len(found(new, "relay")) == len(before["memory"]) + 1
    with pytest.raises(Moved, match="lives at"):
        add(old, memory("lost?"))
    assert len(rows(url, "acme")["memory"]) == len(before["memory"])
    forget_moved(server, other, "acme")
    assert not any(rows(url, "acme").values())
    with pytest.raises(Moved, match="lives at"):
        PostgresStore(server, "acme")
