"""Memories, links, both indexes, jobs."""

from __future__ import annotations

from trivet.store.postgres.migrations.steps import keep_tenants_apart, run_file

revision = "0001"
down_revision = None

TABLES = (
    "tenant", "memory", "memory_tag", "revision", "link", "lexical", "posting", "fingerprint", "embedding_model",
    "passage", "job", "change", "meta",
)  # fmt: skip


def upgrade() -> None:
    run_file("0001")
    keep_tenants_apart(TABLES)
