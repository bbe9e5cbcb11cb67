"""The record of changes, and what changed since a cache last looked, whichever process changed it."""

from __future__ import annotations

from trivet.store.relational.database import Database

# Caches that lag further behind than this reload whole; that is rare and costs a fraction of a second.
CHANGES_KEPT = 20_000


class Changes:
    """Reads the change table. Costs a few microseconds when nothing happened."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.sql("memories")

    def last(self) -> int:
        with self._database.errors():
            row = self._database.read().execute(self._sql["last_change"]).fetchone()
        return int(row[0]) if row else 0

    def since(self, sequence: int) -> list[tuple[int, int]] | None:
        """(sequence, key) of each later change, oldest first; None when the record does not reach back so far."""
        with self._database.errors():
            rows = self._database.read().execute(self._sql["changes_since"], {"sequence": sequence}).fetchall()
        if rows and rows[0][0] != sequence + 1:
            return None
        return [(row[0], row[1]) for row in rows]
