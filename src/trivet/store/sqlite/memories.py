"""Memories in SQLite: what is purged or scrubbed leaves the file, too."""

from __future__ import annotations

from trivet.store.base import Entry
from trivet.store.relational.memories import RelationalMemories


class SqliteMemories(RelationalMemories):
    def purge(self, id: str) -> None:
        with self._database.write() as connection:
            super().purge(id)
            # Merging the index segments is what drops the words of the purged text from the file.
            connection.execute(connection.sql("lexical")["optimize"])
        self._empty_log()

    def scrub(self, entry: Entry) -> None:
        with self._database.write() as connection:
            super().scrub(entry)
            connection.execute(connection.sql("lexical")["optimize"])
        self._empty_log()

    def _empty_log(self) -> None:
        """What was removed from the file must not live on in its write-ahead log."""
        with self._database.errors():
            self._database.read().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
