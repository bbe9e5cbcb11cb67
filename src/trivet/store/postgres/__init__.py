"""The store of a team: many tenants in one PostgreSQL database with pgvector."""

from trivet.store.postgres.server import Server
from trivet.store.postgres.store import PostgresServer, PostgresStore, open_server

__all__ = ["PostgresServer", "PostgresStore", "Server", "open_server"]
