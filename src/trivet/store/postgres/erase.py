"""Takes purged words out of the tables for good: PostgreSQL keeps deleted rows in its files until they are vacuumed."""

from __future__ import annotations

import psycopg

from trivet.store.postgres.connection_pool import Connection

# Those that hold words of memories, or what was made of them.
TABLES = (
    "memory", "memory_tag", "revision", "lexical", "posting", "passage", "mention", "statement", "concept", "secret",
    "proposal", "feedback", "vault_part",
)  # fmt: skip
VACUUM_PENDING = "Its words are in the files of the database until the next vacuum, which was asked for."
READER_PENDING = (
    "Its words are in the files of the database: a transaction that began before has not ended. They go after it."
)
OWNER_PENDING = (
    "Its words are in the files of the database until it is vacuumed, which this role may not do. Autovacuum does it "
    f"in time; at once, the owner of the tables does: VACUUM (INDEX_CLEANUP ON) {', '.join(TABLES)}"
)

# Which transaction purged, and when.
MARK = "SELECT pg_current_xact_id()::xid::text || ' ' || extract(epoch FROM clock_timestamp())"
# A deleted row can go when no snapshot is older than its deletion.
_OLDER_SNAPSHOTS = "SELECT count(*) FROM pg_stat_activity WHERE age(backend_xmin) >= age(%s::xid)"
# With every index: otherwise PostgreSQL leaves the words in indexes while there are few. It waits for nobody.
_VACUUM = f"VACUUM (INDEX_CLEANUP ON, SKIP_LOCKED, TRUNCATE OFF) {', '.join(TABLES)}"
_NOT_VACUUMED = """
SELECT count(*) FROM pg_stat_user_tables WHERE relname = ANY(%s)
AND coalesce(greatest(last_vacuum, last_autovacuum), '-infinity') < to_timestamp(%s)
"""


def erase(connection: Connection, mark: str) -> str | None:
    """Vacuums after the purge that set the mark. What is still pending; None if nothing is."""
    transaction, moment = mark.split()
    if _count(connection, _OLDER_SNAPSHOTS, (transaction,)):
        return READER_PENDING
    connection.execute(_VACUUM)
    return OWNER_PENDING if _count(connection, _NOT_VACUUMED, (list(TABLES), float(moment))) else None


def _count(connection: psycopg.Connection[tuple[int, ...]] | Connection, sql: str, values: tuple[object, ...]) -> int:
    row = connection.execute(sql, values).fetchone()
    return int(row[0]) if row else 0
