"""The schema: made from nothing, brought up from every earlier version with data in it, once however many begin."""

from __future__ import annotations

import threading

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from support.postgres_server import PostgresServer
from support.stores import add, found, memory
from support.waiting import ended
from trivet.errors import InvalidInput, StoreError
from trivet.store.postgres import PostgresStore
from trivet.store.postgres.migrate import _MIGRATIONS, HEAD, migrate

ROW = """INSERT INTO memory (tenant, key, id, content, category, tags, importance, confidence, expanded_keywords, scope,
                     created_at, updated_at, state, sensitive, revision, length)
         VALUES (%(tenant)s, 1, 'one', 'relay', 'facts', '[]', 0.5, 1, '[]', 'default', 'then', 'then', 'active',
                 false, 1, 1)"""


def test_the_head_is_the_last_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_from_nothing_to_a_store(empty_url: str) -> None:
    store = PostgresStore(empty_url)
    one = memory("relay")
    add(store, one)
    assert found(store, "relay") == [one.id]
    assert store.memories.stats().schema == int(HEAD)
    store.close()


@pytest.mark.parametrize("start", ["0001", "0002"])
def test_up_from_an_earlier_version_with_data_of_two_tenants(empty_url: str, start: str) -> None:
    migrate(empty_url, "test", start)
    for tenant in ("a", "b"):
        with psycopg.connect(empty_url) as connection:
            connection.execute("SELECT set_config('trivet.tenant', %s, true)", (tenant,))
            connection.execute("INSERT INTO tenant (tenant, last_key) VALUES (%s, 1)", (tenant,))
            connection.execute(ROW, {"tenant": tenant})
    for tenant in ("a", "b"):
        store = PostgresStore(empty_url, tenant)
        assert store.memories.get("one").content == "relay"
        assert store.graph.backlog("rules").waiting == (1 if start == "0001" else 0)
        add(store, memory("door"))
        store.close()


def test_many_that_begin_at_once_migrate_once(empty_url: str) -> None:
    failures: list[BaseException] = []

    def open_it() -> None:
        try:
            PostgresStore(empty_url).close()
        except BaseException as error:  # noqa: BLE001  # told to the thread that asserts
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        ended(thread)
    assert failures == []


def test_a_failed_migration_stops_with_a_clear_message(empty_url: str) -> None:
    migrate(empty_url, "test", "0001")
    with psycopg.connect(empty_url) as connection:
        connection.execute("CREATE TABLE mention (mine text)")
    with pytest.raises(StoreError, match=r"from schema 0001 to 0008 failed: .*mention.*already exists"):
        PostgresStore(empty_url)
    with psycopg.connect(empty_url) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == ("0001",)
        assert connection.execute("SELECT to_regclass('concept')").fetchone() == (None,)
        connection.execute("DROP TABLE mention")
    PostgresStore(empty_url).close()


def test_an_index_left_broken_is_built_again(empty_url: str, postgres: PostgresServer) -> None:
    migrate(empty_url, "test", "0002")
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute("CREATE INDEX CONCURRENTLY link_by_target ON link (tenant, target, kind)")
    name = psycopg.conninfo.conninfo_to_dict(empty_url)["dbname"]
    with postgres.administrator(str(name)) as administrator:
        administrator.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'link_by_target'::regclass")
    PostgresStore(empty_url).close()
    with psycopg.connect(empty_url) as connection:
        valid = "SELECT bool_and(indisvalid) FROM pg_index WHERE indrelid = 'link'::regclass"
        assert connection.execute(valid).fetchone() == (True,)


def test_a_newer_schema_is_refused(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match="newer Trivet"):
        PostgresStore(url)


def test_an_address_nobody_answers_is_a_clear_error() -> None:
    with pytest.raises(StoreError, match="connection"):
        PostgresStore("postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(InvalidInput, match="address"):
        PostgresStore("not an address")
