"""What a migration is made of: SQL from a file, row-level security for its tables, indexes built while others write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources

from alembic import op
from sqlalchemy import text

# The sub-select is asked once a query; the bare function would be asked once a row, which doubles the time of a scan.
_POLICY = """
CREATE POLICY one_tenant ON {table}
USING (tenant = (SELECT current_setting('trivet.tenant', true)))
WITH CHECK (tenant = current_setting('trivet.tenant', true))
"""


def run_file(name: str) -> None:
    sql = resources.files("trivet.store.postgres").joinpath("sql", "migrations", f"{name}.sql").read_text("utf-8")
    op.get_bind().exec_driver_sql(sql)


def keep_tenants_apart(tables: Sequence[str]) -> None:
    """FORCE: the owner of the tables, which a small installation also uses to read and write, is bound like anyone."""
    for table in tables:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(_POLICY.format(table=table))


# Empty: the server itself, which writes, fills its caches and checks keys. Else a user, for reads alone.
_VIEWER = "(SELECT coalesce(current_setting('trivet.viewer', true), ''))"
_NOBODY = f"{_VIEWER} = ''"
_READABLE = f"""
{_NOBODY} OR owner = {_VIEWER}
OR (NOT sensitive AND state != 'deleted' AND (
    EXISTS (SELECT 1 FROM share AS s WHERE s.memory = memory.key AND s.grantee IN ({_VIEWER}, '*'))
    OR EXISTS (SELECT 1 FROM tag_share AS s JOIN memory_tag AS t ON t.tag = s.tag
               WHERE t.memory = memory.key AND s.owner = memory.owner AND s.grantee IN ({_VIEWER}, '*'))))
"""
_OF_A_MEMORY = f"{_NOBODY} OR EXISTS (SELECT 1 FROM memory AS m WHERE m.key = {{table}}.memory)"
_ONLY_FOR_USERS: dict[str, str] = {
    "memory": _READABLE,
    "revision": _OF_A_MEMORY.format(table="revision"),
    "secret": _OF_A_MEMORY.format(table="secret"),
    "lexical": _OF_A_MEMORY.format(table="lexical"),
    "link": f"""{_NOBODY} OR (EXISTS (SELECT 1 FROM memory AS m WHERE m.key = link.source)
                              AND EXISTS (SELECT 1 FROM memory AS m WHERE m.key = link.target))""",
    "audit": f"{_NOBODY} OR actor = {_VIEWER}",
    "account": _NOBODY,
    "api_key": _NOBODY,
}


def keep_users_apart() -> None:
    """Beside the tenant: what holds words shows a user only their own memories and those shared with them.

    The indexes (postings, vectors, mentions) hold no sentences and are read for all users at once; what is found in
    them is looked up in the memories.
    """
    for table, condition in _ONLY_FOR_USERS.items():
        op.execute(f"CREATE POLICY one_user ON {table} AS RESTRICTIVE FOR SELECT USING ({condition})")


def keep_to_their_users(tables: Mapping[str, str]) -> None:
    """What is one user's alone, by the column that names them."""
    for table, column in tables.items():
        condition = f"{_NOBODY} OR {column} = {_VIEWER}"
        op.execute(f"CREATE POLICY one_user ON {table} AS RESTRICTIVE FOR SELECT USING ({condition})")


def index_online(indexes: Mapping[str, str]) -> None:
    """Builds each index while others go on writing. What a killed attempt left behind, which is no use, goes first."""
    broken = text("SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(:name) AND NOT indisvalid")
    with op.get_context().autocommit_block():
        for name, definition in indexes.items():
            if op.get_bind().execute(broken, {"name": name}).first():
                op.execute(f"DROP INDEX CONCURRENTLY {name}")
            op.execute(f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {definition}")


@contextmanager
def across_tenants(*tables: str) -> Iterator[None]:
    """Lets the owner see the rows of all tenants, within the transaction of this migration and for nobody else."""
    for table in tables:
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    yield
    for table in tables:
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
