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
