"""Opens the store that the settings name: a file, or a tenant on a database server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trivet.errors import InvalidInput
from trivet.memory.tenants import check_tenant, tenant_file
from trivet.settings import Settings
from trivet.settings.address import database_of, is_unknown
from trivet.store.servers import DatabaseServer, open_server
from trivet.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from trivet.store import Store

# What SQLite takes for a database without a file.
IN_MEMORY = ":memory:"


def open_store(settings: Settings, server: DatabaseServer | None = None) -> Store:
    """`server` is one that is open already, shared by many tenants; else the store opens one and closes it."""
    if is_unknown(settings.path):
        raise InvalidInput(
            "The path of the store looks like an address, and is neither postgresql://USER@HOST/DATABASE nor "
            "https://HOST. For a file of that name, write ./ before it."
        )
    if settings.path == IN_MEMORY:
        raise InvalidInput(
            f"A store is a file, which several processes share and which outlives them; {IN_MEMORY} is none. "
            "For one that goes away, name a file in a temporary folder; for a file of that name, write ./ before it."
        )
    kind = database_of(settings.path)
    if kind is None:
        return SqliteStore(tenant_file(settings), settings.busy_time_limit_ms)
    check_tenant(settings.tenant)
    opened = server or open_server(settings, kind)
    return opened.store(settings.tenant, closes_server=server is None)
