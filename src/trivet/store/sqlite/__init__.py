"""The embedded store: one SQLite file."""

from trivet.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
