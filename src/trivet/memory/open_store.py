"""Opens the store that the settings name: a file, or a tenant on a PostgreSQL server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trivet.errors import InvalidInput
from trivet.memory.tenants import check_tenant, tenant_file
from trivet.settings import Settings
from trivet.settings.address import is_postgres, is_unknown
from trivet.store.base import Store
from trivet.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from trivet.store.postgres import Server


def open_store(settings: Settings, server: Server | None = None) -> Store:
    """`server` is one that is open already, shared by many tenants; else the store opens one and closes it."""
    if is_unknown(settings.path):
        raise InvalidInput(
            "The path of the store looks like an address, and is neither postgresql://USER@HOST/DATABASE nor "
            "https://HOST. For a file of that name, write ./ before it."
        )
    if not is_postgres(settings.path):
        return SqliteStore(tenant_file(settings), settings.busy_time_limit_ms)
    check_tenant(settings.tenant)
    opened = server or open_server(settings)
    from trivet.store.postgres import PostgresStore

    return PostgresStore(opened, settings.tenant, closes_server=server is None)


def open_server(settings: Settings) -> Server:
    """The database of all tenants, to be opened once a process."""
    try:
        from trivet.store.postgres import Server
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"A store on PostgreSQL needs the package {error.name}. Run `pip install 'trivet[postgres]'`."
        ) from None
    return Server(
        settings.path,
        patience=settings.busy_time_limit_ms / 1000,
        pooler=settings.postgres_pooler,
        vector_bytes=settings.vector_memory_mb * 2**20,
        replica_urls=settings.replica_urls,
        replica_lag_seconds=settings.replica_lag_seconds,
    )
