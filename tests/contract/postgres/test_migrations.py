"""The schema is created or upgraded with its data exactly once from every earlier version."""

from __future__ import annotations

import psycopg
import pytest

from support.postgres_server import PostgresServer
from support.postgres_versions import make_version
from support.stores import add, found, memory
from support.waiting import in_threads
from trivet.errors import InvalidInput, StoreError
from trivet.store.postgres import PostgresStore
from trivet.store.postgres.migrate import SCHEMA_VERSION, migrate


def test_new_schema_makes_a_working_store(empty_url: str) -> None:
    store = PostgresStore(empty_url)
    one = memory("relay")
    add(store, one)
    assert found(store, "relay") == [one.id]
    assert store.memories.stats().schema == SCHEMA_VERSION
    store.close()


@pytest.mark.parametrize("start", range(1, SCHEMA_VERSION))
def test_upgrade_keeps_the_data_of_two_tenants(empty_url: str, start: int) -> None:
    both = {
        tenant: (memory("relay", tags=("door",)), memory(f"relay station {tenant}"))
        for tenant in ("a", "b")
    }
    for tenant, memories in both.items():
        make_version(empty_url, start, tenant, memories)
    for tenant, memories in both.items():
        store = PostgresStore(empty_url, tenant)
        assert tuple(store.memories.everything()) == memories
        assert found(store, "relay") == [one.id for one in memories], "the shorter one first"
        assert store.graph.backlog("rules").waiting == 2
        assert all(finding.ok for finding in store.upkeep.findings())
        add(store, memory("door"))
        store.close()


def test_concurrent_starts_migrate_once(empty_url: str) -> None:
    in_threads(4, lambda _: PostgresStore(empty_url).close())
    with psycopg.connect(empty_url) as connection:
        assert connection.execute("SELECT version FROM schema_version").fetchall() == [
            (SCHEMA_VERSION,)
        ]


def test_failed_migration_stops_with_a_clear_message(empty_url: str) -> None:
    migrate(empty_url, "test", 1)
    with psycopg.connect(empty_url) as connection:
        connection.execute("CREATE TABLE mention (mine text)")
    with pytest.raises(
        StoreError,
        match=rf"from schema 0001 to {SCHEMA_VERSION:04} failed: .*mention.*already exists",
    ):
        PostgresStore(empty_url)
    with psycopg.connect(empty_url) as connection:
        assert connection.execute("SELECT version FROM schema_version").fetchone() == (1,)
        assert connection.execute("SELECT to_regclass('concept')").fetchone() == (None,)
        connection.execute("DROP TABLE mention")
    PostgresStore(empty_url).close()


def test_broken_index_is_rebuilt(empty_url: str, postgres: PostgresServer) -> None:
    migrate(empty_url, "test", 2)
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute(
            "CREATE INDEX CONCURRENTLY link_by_target ON link (tenant, target, kind)"
        )
    name = psycopg.conninfo.conninfo_to_dict(empty_url)["dbname"]
    with postgres.administrator(str(name)) as administrator:
        administrator.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'link_by_target'::regclass"
        )
    PostgresStore(empty_url).close()
    with psycopg.connect(empty_url) as connection:
        valid = "SELECT bool_and(indisvalid) FROM pg_index WHERE indrelid = 'link'::regclass"
        assert connection.execute(valid).fetchone() == (True,)


def test_each_older_version_refuses_the_current_schema(url: str) -> None:
    for version in range(1, SCHEMA_VERSION):
        with pytest.raises(
            StoreError,
            match=rf"newer Trivet.*{SCHEMA_VERSION}.*knows {version:04}.*Nothing was.*upgr",
        ):
            migrate(url, "test", version)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT version FROM schema_version").fetchall() == [
            (SCHEMA_VERSION,)
        ]


def test_newer_schema_is_refused(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE schema_version SET version = 9999")
    with pytest.raises(StoreError, match="newer Trivet"):
        PostgresStore(url)


def _as_alembic_left_it(url: str) -> None:
    """Store the version in Alembic's table, as Trivet did before it numbered migrations itself."""
    with psycopg.connect(url) as connection:
        [version] = connection.execute("SELECT version FROM schema_version").fetchone() or (None,)
        connection.execute("DROP TABLE schema_version")
        connection.execute(
            "CREATE TABLE alembic_version (version_num varchar(32) NOT NULL PRIMARY KEY)"
        )
        connection.execute("INSERT INTO alembic_version VALUES (%s)", (f"{version:04}",))


def _version_tables(url: str) -> tuple[bool, bool]:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT to_regclass('alembic_version'), to_regclass('schema_version')"
        ).fetchone()
    assert row is not None
    return row[0] is not None, row[1] is not None


def test_current_database_of_alembic_opens_unchanged(url: str) -> None:
    store = PostgresStore(url)
    one = memory("relay")
    add(store, one)
    store.close()
    _as_alembic_left_it(url)
    store = PostgresStore(url)
    assert found(store, "relay") == [one.id]
    assert store.memories.stats().schema == SCHEMA_VERSION
    store.close()
    assert _version_tables(url) == (True, False), "an older Trivet must find its table"


def test_older_database_of_alembic_is_upgraded(empty_url: str) -> None:
    migrate(empty_url, "test", 5)
    _as_alembic_left_it(empty_url)
    store = PostgresStore(empty_url)
    add(store, memory("relay"))
    assert store.memories.stats().schema == SCHEMA_VERSION
    store.close()
    assert _version_tables(empty_url) == (False, True), (
        "the old version number would be wrong from now on"
    )


def test_newer_schema_of_alembic_is_refused(url: str) -> None:
    _as_alembic_left_it(url)
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match="newer Trivet"):
        PostgresStore(url)


def test_unreachable_address_is_a_clear_error() -> None:
    with pytest.raises(StoreError, match="connection"):
        PostgresStore("postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(InvalidInput, match="address"):
        PostgresStore("not an address")
