"""A store moves between a file and a server unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.graphs import counts, held, reached, read_all
from support.stores import add, embed, found, link, memory, near, replace
from trivet.errors import Conflict
from trivet.store.postgres import PostgresStore, Server
from trivet.store.postgres.maintenance import import_sqlite
from trivet.store.relational.store import RelationalStore as Store
from trivet.store.sqlite.store import SqliteStore


def filled(store: Store) -> list[str]:
    one, two = (
        memory("we met Clara at Acme", tags=("a",)),
        memory("the office of Acme", sensitive=False),
    )
    add(store, one, two, memory("secret Acme", sensitive=True))
    store.links.add(link(one, "see-also", two))
    embed(store, store.vectors.adopt("tiny", "a", 2), {one.content: (1, 0), two.content: (0, 1)})
    read_all(store)
    return [one.id, two.id]


def test_file_moves_to_a_server_and_back(server: Server, tmp_path: Path) -> None:
    embedded = SqliteStore(tmp_path / "memory.db")
    first, second = filled(embedded)
    there = PostgresStore(server, "there")
    import_sqlite(tmp_path / "memory.db", there._database)
    there.upkeep.backup(tmp_path / "back.db")
    back = SqliteStore(tmp_path / "back.db")
    for store in (embedded, there, back):
        assert found(store, "acme")[:1] == found(embedded, "acme")[:1]
        assert near(store, store.vectors.models()[0], (1, 0)) == [first, second]
        assert held(store) == held(embedded)
        assert counts(store) == counts(embedded)
        assert reached(store, embedded.memories.get(first)) == pytest.approx(
            reached(embedded, embedded.memories.get(first))
        )
        assert all(finding.ok for finding in store.upkeep.findings())
    assert (
        list(there.memories.everything())
        == list(back.memories.everything())
        == list(embedded.memories.everything())
    )
    add(there, memory("a new one with Clara"))
    replace(there, there.memories.get(first))
    read_all(there)
    assert all(finding.ok for finding in there.upkeep.findings())
    embedded.close()
    back.close()


def test_tenant_with_memories_accepts_no_import(server: Server, tmp_path: Path) -> None:
    SqliteStore(tmp_path / "memory.db").close()
    store = PostgresStore(server)
    add(store, memory("relay"))
    with pytest.raises(Conflict, match="already"):
        import_sqlite(tmp_path / "memory.db", store._database)
