"""The store of one tenant in a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from trivet.store.postgres.database import Database
from trivet.store.postgres.import_sqlite import import_sqlite
from trivet.store.postgres.server import Server
from trivet.store.postgres.vectors import PostgresVectorIndex
from trivet.store.relational.store import RelationalStore


class PostgresStore(RelationalStore):
    """The memories of one tenant. A process opens the server once and a store for each tenant on it."""

    _database: Database
    vectors: PostgresVectorIndex

    def __init__(self, server: Server | str, tenant: str = "default", closes_server: bool = False) -> None:
        opened = Server(server) if isinstance(server, str) else server
        self._own_server = opened if closes_server or isinstance(server, str) else None
        super().__init__(Database(opened, tenant))

    def import_sqlite(self, file: Path) -> None:
        """A file of the embedded store, of the present schema, into this tenant, which must be empty."""
        import_sqlite(file, self._database)

    def close(self) -> None:
        super().close()
        if self._own_server:
            self._own_server.close()
