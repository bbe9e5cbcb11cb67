"""The embedded store: one SQLite file and the indexes over it."""

from trivet.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
