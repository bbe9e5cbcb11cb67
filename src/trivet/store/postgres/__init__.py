"""The store of a team: PostgreSQL with pgvector, many tenants in one database."""

from trivet.store.postgres.server import Server
from trivet.store.postgres.store import PostgresServer, PostgresStore, open_server

__all__ = ["PostgresServer", "PostgresStore", "Server", "open_server"]
