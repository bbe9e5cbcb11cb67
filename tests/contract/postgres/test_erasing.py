"""Erasing under a role that may not vacuum names the role that may."""

from __future__ import annotations

import psycopg

from support.postgres_server import PostgresServer
from support.stores import add, memory
from trivet.store.postgres import PostgresStore


def test_role_without_tables_leaves_erasing_to_the_owner(postgres: PostgresServer) -> None:
    url = postgres.database()
    store = PostgresStore(url)
    one = memory("the word xyzzy")
    add(store, one)
    with psycopg.connect(url.replace("trivet@", "postgres@"), autocommit=True) as above:
        above.execute(f"ALTER DATABASE {above.info.dbname} OWNER TO postgres")
        above.execute("ALTER TABLE revision OWNER TO postgres")
        above.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON revision TO trivet")
        store.memories.purge(one.id)
        assert "this role may not do" in str(store.upkeep.finish_erasing())
        above.execute("VACUUM revision")
    assert store.upkeep.finish_erasing() is None
    store.close()
    postgres.drop(url)
