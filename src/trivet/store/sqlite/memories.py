"""Memories in SQLite: what is purged leaves the file, too."""

from __future__ import annotations

from trivet.store.relational.memories import RelationalMemories


class SqliteMemories(RelationalMemories):
    def purge(self, id: str) -> None:
        with self._database.write() as connection:
            super().purge(id)
            # Merging the index segments is what drops the words of the purged text from the file.
            connection.execute(connection.sql("lexical")["optimize"])
        with self._database.errors():
            self._database.read().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
