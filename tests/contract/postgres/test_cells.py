"""Moving a tenant to another database loses nothing and keeps one home, even if interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from contract.postgres.test_tenants import fill, tables
from support.postgres_server import PostgresServer
from support.stores import add, found, memory
from trivet.cli import main
from trivet.errors import Conflict, InvalidInput, Moved, Moving
from trivet.memory.admin.accounts import make_key
from trivet.serve.http.tenants import Tenants
from trivet.settings import Settings
from trivet.store.postgres import PostgresStore, Server
from trivet.store.postgres.tenant_move import abandon, forget_moved, move
from trivet.trivet import Trivet

STAGES = ("copying", "catching up", "frozen", "switched", "finishing")
# Tables that differ between databases: the tenant's location, its models' numbers, and the files.
DIFFERENT = (
    "tenant",
    "embedding_model",
    "passage",
    "job",
    "meta",
    "change",
    "directory",
    "statement",
)


class Stopped(BaseException):
    """Simulates a process killed at this point: no later code of it runs."""


def stop_at(stage: str) -> Callable[[str, str], None]:
    def stop(now: str, detail: str) -> None:
        if now == stage:
            raise Stopped

    return stop


def quietly(stage: str, detail: str) -> None:
    """Report nothing."""


def rows(url: str, tenant: str) -> dict[str, list[tuple[str]]]:
    with psycopg.connect(url) as connection:
        connection.execute("SELECT set_config('trivet.tenant', %s, true)", (tenant,))
        names = [name for name in tables(connection) if name not in DIFFERENT]
        return {
            name: sorted(connection.execute(f"SELECT t::text FROM {name} AS t").fetchall())
            for name in names
        }


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


def test_move_continues_wherever_it_was_stopped(
    server: Server, other: Server, url: str, other_url: str
) -> None:
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
            assert {one.id for one in written} <= set(found(old, "relay")), "it is readable"
            with pytest.raises(Moving, match="try again"):
                add(old, memory("not now"))
            with pytest.raises(Moving):
                old.usage.note({written[0].id: 1})
    before = rows(url, "acme")
    move(server, other, "acme", quietly)
    new = PostgresStore(other, "acme")
    after = rows(other_url, "acme")
    assert {name for name, one in after.items() if one != before[name]} == set()
    assert rows(other_url, "birch") == theirs, "other tenants are unchanged"
    assert set(found(PostgresStore(other, "birch"), "relay")) == set()
    state = new.feed.state()
    assert state is not None
    assert epoch is not None
    assert state.epoch != epoch.epoch
    assert epoch.epoch in state.past, "laptops learn that this is another server"
    add(new, memory("relay of the new home"))
    assert len(found(new, "relay")) == len(before["memory"]) + 1
    with pytest.raises(Moved, match="lives at"):
        add(old, memory("lost?"))
    assert len(rows(url, "acme")["memory"]) == len(before["memory"])
    forget_moved(server, other, "acme")
    assert not any(rows(url, "acme").values())
    with pytest.raises(Moved, match="lives at"):
        PostgresStore(server, "acme")


def test_move_can_be_refused_and_abandoned(
    server: Server, other: Server, url: str, other_url: str
) -> None:
    old = PostgresStore(server, "acme")
    add(old, memory("our relay"))
    again = Server(url)
    with pytest.raises(InvalidInput, match="is already in"):
        move(server, again, "acme", quietly)
    with pytest.raises(InvalidInput, match="no tenant nobody"):
        move(server, other, "nobody", quietly)
    add(PostgresStore(other, "acme"), memory("theirs"))
    with pytest.raises(Conflict, match="of its own"):
        move(server, other, "acme", quietly)
    assert server.standing("acme") == other.standing("acme"), "nothing was recorded"

    add(PostgresStore(server, "birch"), memory("our relay"))
    PostgresStore(other, "birch")  # the first tenant of a server, which is still empty
    with pytest.raises(Stopped):
        move(server, other, "birch", stop_at("frozen"))
    with pytest.raises(Conflict, match="has not moved away"):
        forget_moved(server, other, "birch")
    third = Server(other_url)
    third.__dict__["cell"] = "a third"
    with pytest.raises(Conflict, match=r"is being moved to .*--abandon"):
        move(server, third, "birch", quietly)
    abandon(server, other, "birch", quietly)
    assert other.standing("birch") is None
    assert not any(rows(other_url, "birch").values())
    birch = PostgresStore(server, "birch")

    def slowly(stage: str, detail: str) -> None:
        """Simulate a final copy that outlasts the freeze while a writer arrives."""
        if stage == "frozen":
            with server.as_tenant("birch") as connection:
                connection.execute(
                    "UPDATE tenant SET frozen_until = clock_timestamp() - interval '1 second'"
                )
            add(birch, memory("written again"))

    with pytest.raises(Conflict, match="did not stay frozen"):
        move(server, other, "birch", slowly)
    move(server, other, "birch", quietly)
    with pytest.raises(Conflict, match="move it back"):
        abandon(server, other, "birch", quietly)
    with pytest.raises(Conflict, match="forget-moved"):
        move(other, server, "birch", quietly)
    forget_moved(server, other, "birch")
    move(other, server, "birch", quietly)
    assert len(found(birch, "relay")) == len(found(birch, "written")) == 1, (
        "an open store continues to work"
    )
    third.close()
    again.close()


def test_servers_follow_a_move_and_finish_a_stopped_one(
    server: Server, other: Server, url: str, other_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two servers: one has the tenant open when it moves, and one reads the directory."""
    settings = {
        one: Settings(
            path=one,
            embedder="none",
            background=False,
            changes="off",
            directory=url,
            cells=(url, other_url),
        )
        for one in (url, other_url)
    }
    with Trivet.open(settings=settings[url], tenant="acme") as trivet:
        trivet.engine.store.accounts.add_user("ana", "writer")
        key = make_key(trivet.engine.store, "acme", "ana").text
    houses = [Tenants(settings[one]) for one in (url, other_url)]
    try:
        for house in houses:
            house.trivet(house.caller(key)).remember("The relay listens.")
        caller = houses[0].caller(key)
        with pytest.raises(Stopped):
            move(server, other, "acme", stop_at("switched"))
        with pytest.raises(Moved) as refused:
            houses[0].trivet(caller).engine.store.memories.stats()
        assert url not in str(refused.value)
        assert other.address not in str(refused.value), "users do not learn where the databases are"
        for house in reversed(houses):
            ana = house.trivet(house.caller(key))
            ana.remember("The relay listens on.")
            assert ana.engine.store.feed.database.name.startswith(other.name)
        assert len(houses[0].trivet(houses[0].caller(key)).list(limit=10).memories) == 4
        assert main(("tenant", "move", "acme", "--path", url, "--to", other_url)) == 0
        assert f"acme is now at {other.address}." in capsys.readouterr().out, (
            "the remaining step, the directory, is done"
        )
        assert main(("tenant", "forget-moved", "acme", "--path", url, "--to", other_url)) == 0
        assert main(("tenant", "show", "acme", "--path", url)) == 0
        shown = capsys.readouterr().out
        assert f"moved to {other.address}" in shown
        assert f"The directory lists it at {other.address}" in shown
        assert not any(rows(url, "acme").values())
    finally:
        for house in houses:
            house.close()


def test_tenant_in_the_directory_is_created_nowhere_else(url: str, other_url: str) -> None:
    first, second = Server(url, directory_url=url), Server(other_url, directory_url=url)
    PostgresStore(first, "acme")
    with pytest.raises(Moved, match=r"directory.*Nothing was created"):
        PostgresStore(second, "acme")
    assert second.standing("acme") is None
    for one in (first, second):
        one.close()
