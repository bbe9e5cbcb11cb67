"""The database itself separates tenants that share tables, even for queries without a condition."""

from __future__ import annotations

import psycopg
import pytest

from contract.graphs import held, read_all
from support.postgres_server import PostgresServer
from support.stores import EARLY, add, document, embed, found, link, memory, near
from trivet.common.clock import moment
from trivet.common.ids import new_id
from trivet.errors import NotFound, StoreError
from trivet.store.postgres import PostgresStore, Server
from trivet.store.records import VaultFile, VaultLink, VaultPart, VaultRecord
from trivet.types import Filter, Key, Proposal, Sealed


def fill(store: PostgresStore, word: str) -> list[str]:
    one, two = memory(f"we met Clara at the {word}", tags=(word,)), memory(f"{word} of Acme")
    add(store, one, two)
    store.links.add(link(one, "see-also", two))
    sealed = Sealed(
        revision=1, field="content", kind="jwt", number=1, key="k", nonce=b"n", sealed=b"s"
    )
    store.memories.replace(store.memories.get(one.id), document(one), "edit", [sealed])
    embed(store, store.vectors.adopt("tiny", "a", 2), {one.content: (1, 0), two.content: (0, 1)})
    read_all(store)
    store.accounts.add_user("ana", "writer")
    store.idempotency.begin(word.encode(), b"request", 60)
    key = Key(id=word, user="ana", rights=("read",), label="", created_at=one.created_at)
    store.accounts.add_key(key, b"hash")
    store.shares.share_memory(one.id, "ana", "read")
    store.shares.share_tag(word, "ana", "read")
    store.vaults.keep(VaultRecord("notes", "/notes", "{}"))
    store.vaults.note_file(
        "notes",
        VaultFile("a.md", 1, 1, "markdown"),
        [VaultPart(one.id, "a.md", "", "", "", "")],
        [],
    )
    store.inbox.add(
        Proposal(id=new_id(), content=word, kind="told", reason="", created_at=moment(EARLY)),
        [word],
    )
    store.usage.note({one.id: 1})
    store.usage.judge(one.id, word, "useful")
    store.vaults.note_links("notes", [VaultLink(one.id, "see-also", two.id)], [])
    follow(store, word)
    return [one.id, two.id]


def follow(store: PostgresStore, word: str) -> None:
    """Simulate laptops that follow the tenant: number a memory, create a conflict, and purge it."""
    gone = memory(f"{word} to go")
    add(store, gone)
    with store.feed.transaction() as connection:
        store.feed.number(connection)
        row = connection.execute(connection.sql("memories")["by_id"], {"id": gone.id}).fetchone()
        said = {
            "rev": word,
            "base": None,
            "author": None,
            "changed_at": EARLY,
            "action": "edit",
            "snapshot": "{}",
        }
        branch = {"key": row["key"] - 1, "waiting": 1, "terms": word, **said}
        connection.execute(connection.sql("sync")["put_branch"], branch)
        done = {"op": word, "result": "applied", "id": gone.id, "reason": "", "at": EARLY}
        connection.execute(connection.sql("sync")["put_applied"], done)
    store.memories.purge(gone.id)
    with store.feed.transaction() as connection:
        store.feed.number(connection)


def tables(connection: psycopg.Connection[tuple[str]]) -> list[str]:
    rows = connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
    ).fetchall()
    return [name for (name,) in rows if name != "schema_version"]


def test_two_tenants_do_not_see_each_other(server: Server) -> None:
    ours, theirs = PostgresStore(server, "ours"), PostgresStore(server, "theirs")
    our_ids, their_ids = fill(ours, "relay"), fill(theirs, "relay")
    for store, ids, others in ((ours, our_ids, their_ids), (theirs, their_ids, our_ids)):
        model = store.vectors.models()[0]
        assert set(found(store, "relay")) == set(near(store, model, (1, 0))) == set(ids)
        assert {one.id for one in store.memories.page(Filter(), "recency", 10, 0).memories} == set(
            ids
        )
        assert held(store, "clara") == {"clara": 1}
        assert store.memories.stats().memories == {"active": 2}
        assert len(store.links.everything()) == 1
        for other in others:
            with pytest.raises(NotFound):
                store.memories.get(other)
            with pytest.raises(NotFound):
                store.memories.purge(other)
            with pytest.raises(NotFound):
                store.links.remove(ids[0], "see-also", other)


def test_same_id_may_exist_in_two_tenants(server: Server) -> None:
    ours, theirs = PostgresStore(server, "ours"), PostgresStore(server, "theirs")
    one = memory("ours")
    add(ours, one)
    add(theirs, memory("theirs", id=one.id))
    assert ours.memories.get(one.id).content == "ours"
    assert theirs.memories.get(one.id).content == "theirs"


def test_query_without_where_sees_one_tenant(server: Server, url: str) -> None:
    for tenant in ("a", "b"):
        fill(PostgresStore(server, tenant), tenant)
    with psycopg.connect(url) as connection:
        for table in tables(connection):
            connection.execute("SELECT set_config('trivet.tenant', 'a', true)")
            seen = {row[0] for row in connection.execute(f"SELECT tenant FROM {table}")}
            assert seen <= {"a"}, table
            assert seen or table in (
                "job",
                "reading",
                "statement",
                "meta",
                "likely_update",
                "directory",
            ), f"{table} proves nothing, it is empty"
        assert connection.execute("SELECT * FROM statement_end").fetchall() == []
        assert connection.execute("DELETE FROM change").rowcount > 0
        connection.execute("SELECT set_config('trivet.tenant', 'b', true)")
        row = connection.execute("SELECT count(*) FROM change").fetchone()
        assert row is not None
        assert row[0] > 0
        connection.rollback()


def test_without_a_tenant_nothing_is_read_or_written(server: Server, url: str) -> None:
    fill(PostgresStore(server, "a"), "a")
    with psycopg.connect(url, autocommit=True) as connection:
        for table in tables(connection):
            assert connection.execute(f"SELECT 1 FROM {table}").fetchall() == [], table
        with pytest.raises(psycopg.Error):
            connection.execute("INSERT INTO meta (name, value) VALUES ('x', 'y')")


def test_tenant_cannot_write_for_another(server: Server, url: str) -> None:
    fill(PostgresStore(server, "a"), "a")
    with psycopg.connect(url) as connection:
        connection.execute("SELECT set_config('trivet.tenant', 'b', true)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO meta (tenant, name, value) VALUES ('a', 'x', 'y')")


def test_tenant_setting_ends_with_its_transaction(server: Server) -> None:
    """Behind a transaction pooler, another client may run this connection's next transaction."""
    store = PostgresStore(server, "a")
    fill(store, "a")
    with server.connection() as connection:
        row = connection.execute("SELECT current_setting('trivet.tenant', true)").fetchone()
        assert row is not None
        assert not row[0]


def test_every_table_has_a_policy(url: str) -> None:
    with psycopg.connect(url) as connection:
        sql = "SELECT relrowsecurity AND relforcerowsecurity FROM pg_class WHERE oid = to_regclass(%s)"
        for table in tables(connection):
            assert connection.execute(sql, (table,)).fetchone() == (True,), table


def test_every_index_starts_with_the_tenant(url: str) -> None:
    sql = """SELECT i.indexrelid::regclass::text FROM pg_index AS i JOIN pg_class AS t ON t.oid = i.indrelid
             JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = i.indkey[0]
             WHERE t.relnamespace = 'public'::regnamespace AND a.attname != 'tenant'"""
    with psycopg.connect(url) as connection:
        assert [row[0] for row in connection.execute(sql)] == []


def test_role_that_bypasses_policies_is_refused(postgres: PostgresServer, url: str) -> None:
    with pytest.raises(StoreError, match="row-level security"):
        Server(url.replace("trivet@", "postgres@"))


def test_query_without_where_sees_only_the_users_memories(server: Server, url: str) -> None:
    store = PostgresStore(server, "a")
    ana, bo = store.seen_by("ana"), store.seen_by("bo")
    one = memory("the word of ana", owner="ana", tags=("trip",))
    two = memory("a second word", owner="ana", tags=("private plans",))
    his = memory("what bo says", owner="bo")
    add(ana, one, two)
    add(bo, his)
    ana.links.add(link(one, "see-also", two))
    ana.shares.share_tag("trip", "bo", "read")
    store.accounts.add_user("ana", "writer")
    ana.shares.share_tag("trip", "cleo", "read")
    ana.shares.share_memory(two.id, "cleo", "read")
    store.usage.note({one.id: 1, two.id: 1})
    store.vaults.keep(VaultRecord("notes", "/notes", "{}"))
    store.upkeep.salt()
    store.idempotency.begin(b"name", b"request", 60)
    # What each sees: ana herself, and bo, with whom ana shares a tag and cleo another memory.
    rows_seen = {
        "memory": (2, 2),
        "revision": (2, 2),
        "lexical": (2, 2),
        "memory_tag": (1, 2),
        "usage": (1, 2),
        "link": (0, 1),
        "tag_share": (1, 2),
        "share": (0, 0),
        "audit": (1, 6),
        **dict.fromkeys(("account", "api_key", "vault", "once"), (0, 0)),
    }
    with psycopg.connect(url) as connection:
        for table, (by_bo, by_ana) in rows_seen.items():
            for viewer, expected in (("bo", by_bo), ("eve", 0), ("ana", by_ana)):
                connection.execute("SELECT set_config('trivet.tenant', 'a', true)")
                connection.execute("SELECT set_config('trivet.viewer', %s, true)", (viewer,))
                assert len(connection.execute(f"SELECT * FROM {table}").fetchall()) == expected, (
                    table,
                    viewer,
                )
        assert connection.execute("SELECT count(*) FROM meta WHERE name = 'salt'").fetchone() == (
            0,
        )
    assert {share.user for share in ana.shares.all()} == {"bo", "cleo"}
