"""The embedded store: one SQLite file and the indexes over it."""

from __future__ import annotations

from pathlib import Path

from trivet.store.relational.store import RelationalStore
from trivet.store.sqlite.database import Database


class SqliteStore(RelationalStore):
    """The memories of one file, which any number of processes may open."""

    _database: Database

    def __init__(self, path: Path, busy_time_limit_ms: int = 10_000) -> None:
        super().__init__(Database(path, busy_time_limit_ms))


__all__ = ["SqliteStore"]
