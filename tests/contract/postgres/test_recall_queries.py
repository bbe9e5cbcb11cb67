"""A recall sends few queries to the server and reads the change log once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from support.stores import add, memory
from support.waiting import in_threads
from trivet import Trivet
from trivet.store.postgres import PostgresStore, Server
from trivet.store.postgres import connections as connection_pool
from trivet.store.postgres.connections import QUERIES
from trivet.store.postgres.transactions import AutocommitReader


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []
    plain = AutocommitReader.execute_with

    def noting(
        self: AutocommitReader, settings: Mapping[str, str], sql: str, parameters: Any
    ) -> Any:
        seen.append(" ".join(sql.split()))
        return plain(self, settings, sql, parameters)

    monkeypatch.setattr(AutocommitReader, "execute_with", noting)
    return seen


def test_warm_recall_sends_few_queries(url: str, asked: list[str]) -> None:
    with Trivet.open(url, background=False, rerank="off") as trivet:
        for place in ("Paris", "Rome", "Oslo", "Bern"):
            trivet.remember(f"We met Clara in {place}.")
        trivet.drain()
        for _ in range(2):
            trivet.recall("whom did we meet in Rome")
        asked.clear()
        answer = trivet.recall("whom did we meet in Rome")
        assert {leg.leg for leg in answer.health.legs if leg.answered} == {
            "lexical",
            "dense",
            "graph",
        }
        assert len([sql for sql in asked if "FROM change" in sql]) == 1
        assert not [
            sql for sql in asked if "FROM posting" in sql or "FROM passage AS p JOIN" in sql
        ]
        assert not [sql for sql in asked if "FROM job" in sql], (
            "nothing was waiting, and nothing has changed since"
        )
        assert len(asked) <= 6, asked


def test_candidates_are_read_in_one_query(url: str, asked: list[str]) -> None:
    with Trivet.open(url, background=False, rerank="off", changes="off") as trivet:
        trivet.remember_many(
            [
                {"content": f"We met Clara in house {number}.", "importance": 0.1}
                for number in range(60)
            ]
        )
        trivet.drain()
        trivet.recall("whom did we meet")
        asked.clear()
        assert len(trivet.recall("whom did we meet").hits) == 10
        assert len([sql for sql in asked if _same(sql, QUERIES("memories")["seen_by_ids"])]) == 1


def test_new_words_are_read_in_one_query(url: str, asked: list[str]) -> None:
    with Trivet.open(url, background=False, embedder="none") as trivet:
        trivet.remember("We met Clara in Paris, and walked along the river until it rained.")
        trivet.drain()
        trivet.recall("Clara")
        asked.clear()
        [hit, *_] = trivet.recall("walked river rained umbrella harbour").hits
        assert "river" in hit.passage
        assert len([sql for sql in asked if "FROM posting WHERE" in sql]) == 1
        trivet.remember_many(
            [{"content": f"A walk along river number {number}."} for number in range(20)]
        )
        asked.clear()
        assert len(trivet.recall("walked river", limit=30).hits) == 21
        assert len([sql for sql in asked if "FROM lexical WHERE" in sql]) == 1, (
            "changes are read in one query too"
        )


def test_queries_of_every_recall_are_planned_once(url: str) -> None:
    server = Server(url, max_connections=1)
    store = PostgresStore(server)
    one = memory("We met Clara.")
    add(store, one)
    for _ in range(12):
        assert list(store.memories.get_many([one.id])) == [one.id]
    with server.connection() as connection:
        rows = connection.execute(
            "SELECT statement, generic_plans, custom_plans FROM pg_prepared_statements"
        ).fetchall()
    server.close()
    [(generic, custom)] = [
        (row[1], row[2]) for row in rows if _same(row[0], QUERIES("memories")["seen_by_ids"])
    ]
    assert generic > 5
    assert custom == 0


def test_plans_are_renewed_for_tables_that_grew(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(url, max_connections=1)
    store = PostgresStore(server)
    first = memory("The first.")
    for number in range(4):
        add(store, first if number == 0 else memory(f"Early {number}."))
        store.memories.get_many([first.id])
    before = _plan(server, first.id)
    add(store, *(memory(f"Later {number}.") for number in range(3_000)))
    assert _plan(server, first.id) == before, "no plan was made since"
    monkeypatch.setattr(connection_pool, "PLANS_KEPT_SECONDS", -1.0)
    store.memories.get_many([first.id])
    assert _plan(server, first.id) != before
    server.close()


def test_concurrent_counts_of_the_same_memories_do_not_deadlock(server: Server) -> None:
    stores = [PostgresStore(server), PostgresStore(server)]
    memories = [memory(f"Number {number}.") for number in range(40)]
    add(stores[0], *memories)
    ids = [one.id for one in memories]

    def count(number: int) -> None:
        for _ in range(25):
            stores[number].usage.note(dict.fromkeys(ids if number else reversed(ids), 1))

    in_threads(2, count)
    assert {one.shown for one in stores[0].usage.all()} == {50}


def _same(prepared: str, asked: str) -> bool:
    """Return whether a prepared statement, which has numbered parameters, is this query."""
    beginning = asked.partition("%(")[0]
    return bool(beginning) and prepared.startswith(beginning)


def _plan(server: Server, id: str) -> str:
    """Return the server's current plan for finding memories by id."""
    with server.connection() as connection, connection.transaction():
        connection.execute(
            "SELECT set_config('trivet.tenant', 'default', true), set_config('trivet.viewer', '', true)"
        )
        connection.execute("SELECT set_config('plan_cache_mode', 'force_generic_plan', true)")
        rows = connection.execute("SELECT name, statement FROM pg_prepared_statements").fetchall()
        [name] = [row[0] for row in rows if _same(row[1], QUERIES("memories")["seen_by_ids"])]
        found = connection.execute(
            f"EXPLAIN (COSTS off) EXECUTE {name} (NULL, '[\"{id}\"]')", prepare=False
        )
        return "\n".join(row[0] for row in found.fetchall())
