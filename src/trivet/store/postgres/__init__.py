"""The store of a team: PostgreSQL with pgvector, many tenants in one database."""

from trivet.settings import Settings
from trivet.store.postgres.server import Server
from trivet.store.postgres.store import PostgresStore


def open_server(settings: Settings) -> Server:
    return Server(
        settings.path,
        patience=settings.busy_time_limit_ms / 1000,
        pooler=settings.postgres_pooler,
        vector_bytes=settings.vector_memory_mb * 2**20,
        replica_urls=settings.replica_urls,
        replica_lag_seconds=settings.replica_lag_seconds,
        directory_url=settings.directory,
    )


__all__ = ["PostgresStore", "Server", "open_server"]
