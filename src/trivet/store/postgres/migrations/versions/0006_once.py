"""Requests that must act once."""

from __future__ import annotations

from trivet.store.postgres.migrations.steps import keep_tenants_apart, run_file

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    run_file("0006")
    keep_tenants_apart(("once",))
