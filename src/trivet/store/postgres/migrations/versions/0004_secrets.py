"""Secrets taken out of texts, and the record of acts."""

from __future__ import annotations

from trivet.store.postgres.migrations.steps import keep_tenants_apart, run_file

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    run_file("0004")
    keep_tenants_apart(("secret", "audit"))
