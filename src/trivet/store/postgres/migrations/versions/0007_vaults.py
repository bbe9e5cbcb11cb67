"""The ledger of what was ingested from files."""

from __future__ import annotations

from trivet.store.postgres.migrations.steps import keep_tenants_apart, run_file

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    run_file("0007")
    keep_tenants_apart(("vault", "vault_file", "vault_part", "vault_link"))
