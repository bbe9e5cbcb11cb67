"""Users, keys and shares; and what a user may see, kept by the database itself."""

from __future__ import annotations

from trivet.store.postgres.migrations.steps import keep_tenants_apart, keep_users_apart, run_file

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    run_file("0005")
    keep_tenants_apart(("account", "api_key", "share", "tag_share"))
    keep_users_apart()
