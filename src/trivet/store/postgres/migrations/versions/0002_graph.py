"""The concept graph, and a reading for every memory that is there already."""

from __future__ import annotations

from alembic import op

from trivet.store.postgres.migrations.steps import across_tenants, keep_tenants_apart, run_file

revision = "0002"
down_revision = "0001"

TABLES = ("concept", "mention", "statement", "reading", "was_read")
_ENQUEUE = """
INSERT INTO reading (tenant, memory, reader, revision)
SELECT tenant, key, 'rules', revision FROM memory WHERE state != 'deleted' AND NOT sensitive
"""


def upgrade() -> None:
    run_file("0002")
    with across_tenants("memory"):
        op.execute(_ENQUEUE)
    keep_tenants_apart(TABLES)
