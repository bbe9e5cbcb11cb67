"""The store of one tenant in a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from trivet.settings import Settings
from trivet.store.postgres.database import Database
from trivet.store.postgres.maintenance import PostgresMaintenance, import_sqlite
from trivet.store.postgres.server import Server
from trivet.store.postgres.vectors import PostgresVectorIndex
from trivet.store.relational.changes import Changes
from trivet.store.relational.store import RelationalStore


class PostgresServer(Server):
    def store(self, tenant: str, closes_server: bool = False) -> PostgresStore:
        return PostgresStore(self, tenant, closes_server)

    def import_file(self, file: Path, tenant: str) -> None:
        self.store(tenant).import_sqlite(file)


class PostgresStore(RelationalStore):
    _database: Database
    vectors: PostgresVectorIndex

    def __init__(
        self, server: Server | str, tenant: str = "default", closes_server: bool = False
    ) -> None:
        opened = Server(server) if isinstance(server, str) else server
        self._own_server = opened if closes_server or isinstance(server, str) else None
        super().__init__(Database(opened, tenant))

    def import_sqlite(self, file: Path) -> None:
        import_sqlite(file, self._database)

    def _make_vector_index(self, changes: Changes) -> PostgresVectorIndex:
        return PostgresVectorIndex(self._database, self._visibility, changes, self._ids)

    def _make_maintenance(self) -> PostgresMaintenance:
        return PostgresMaintenance(self._database, self.vectors)

    def close(self) -> None:
        super().close()
        if self._own_server:
            self._own_server.close()


def open_server(settings: Settings) -> PostgresServer:
    return PostgresServer(
        settings.path,
        patience=settings.busy_time_limit_ms / 1000,
        pooler=settings.postgres_pooler,
        vector_bytes=settings.vector_memory_mb * 2**20,
        replica_urls=settings.replica_urls,
        replica_lag_seconds=settings.replica_lag_seconds,
        directory_url=settings.directory,
    )
