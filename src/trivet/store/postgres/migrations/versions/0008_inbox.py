"""Proposals, usage and feedback."""

from __future__ import annotations

from trivet.store.postgres.migrations.steps import keep_tenants_apart, keep_to_their_users, run_file

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    run_file("0008")
    keep_tenants_apart(("proposal", "usage", "feedback"))
    keep_to_their_users({"proposal": "owner", "feedback": "actor"})
