"""Backup, rebuilding of derived data, and the checks behind `doctor`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from trivet.errors import StoreError
from trivet.store.base import Document, Maker
from trivet.store.sqlite.changes import note_change
from trivet.store.sqlite.database import Database
from trivet.store.sqlite.memories import write_lexical
from trivet.store.sqlite.queries import queries
from trivet.store.sqlite.secrets import broken_links
from trivet.types import Finding, Memory

_REINDEX_LEXICAL = "Run `trivet reindex --lexical`."
_REINDEX_GRAPH = "Run `trivet reindex --graph`."
_REINDEX_VECTORS = "Run `trivet reindex --vectors`."


class SqliteUpkeep:
    def __init__(self, database: Database) -> None:
        self._database = database

    def backup(self, target: Path) -> None:
        """SQLite's online backup: consistent while others read and write. The target appears only when it is whole."""
        if target.exists():
            raise StoreError(f"{target} exists already. Nothing was written; name another file.")
        partial = target.with_name(target.name + ".partial")
        try:
            partial.unlink(missing_ok=True)
            partial.touch(mode=0o600)
            self._copy_to(partial)
            partial.rename(target)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"The backup {target} cannot be written: {error}. Nothing is left of it.") from None
        finally:
            partial.unlink(missing_ok=True)

    def _copy_to(self, target: Path) -> None:
        copy = sqlite3.connect(target)
        try:
            self._database.read().backup(copy)
        finally:
            copy.close()

    def rebuild_lexical(self, documents: Iterator[tuple[Memory, Document]]) -> int:
        """Everything in one transaction: recalls go on with the old index until it is committed."""
        count = 0
        with self._database.write() as connection:
            connection.execute(queries("lexical")["clear"])
            connection.execute(queries("lexical")["clear_fingerprints"])
            for memory, document in documents:
                key = connection.execute(queries("memories")["by_id"], {"id": memory.id}).fetchone()["key"]
                connection.execute(queries("upkeep")["set_length"], {"key": key, "length": document.length})
                if memory.state != "deleted":
                    write_lexical(connection, key, document)
                note_change(connection, key)
                count += 1
        return count

    def rebuild_vectors(self) -> int:
        """Asks for every vector anew. The old ones answer until each is replaced."""
        with self._database.write() as connection:
            for row in connection.execute(queries("vectors")["models"]).fetchall():
                connection.execute(queries("jobs")["enqueue_model"], {"model": row["model"]})
            return int(connection.execute(queries("upkeep")["count_jobs"]).fetchone()[0])

    def rebuild_graph(self) -> int:
        """Asks for every memory to be read anew; says how many. Statements of a language model stay."""
        with self._database.write() as connection:
            for name in ("forget_hidden_mentions", "forget_hidden_statements", "forget_orphans"):
                connection.execute(queries("graph")[name])
            connection.execute(queries("graph")["enqueue_all"], {"reader": "rules"})
            return int(connection.execute(queries("graph")["pending"], {"reader": "rules"}).fetchone()[0])

    def set_version(self, maker: Maker, version: int) -> None:
        with self._database.write() as connection:
            connection.execute(queries("upkeep")["set_meta"], {"name": maker, "value": str(version)})

    def version(self, maker: Maker) -> int:
        with self._database.errors():
            row = self._database.read().execute(queries("upkeep")["get_meta"], {"name": maker}).fetchone()
        return int(row[0]) if row else 0

    def findings(self) -> tuple[Finding, ...]:
        with self._database.errors():
            return (
                self._in_place(),
                self._integrity(),
                self._lexical_structure(),
                self._count("lexical", "missing", "memories missing from the lexical index", _REINDEX_LEXICAL),
                self._count("lexical", "orphans", "entries of gone memories in the lexical index", _REINDEX_LEXICAL),
                self._count("vectors", "orphans", "vectors of deleted or sensitive memories", _REINDEX_VECTORS),
                self._count("vectors", "unaccounted", "memories with neither vector nor job", _REINDEX_VECTORS),
                self._count("graph", "orphans", "concepts of deleted or sensitive memories", _REINDEX_GRAPH),
                self._count("graph", "unaccounted", "concepts that nothing mentions", _REINDEX_GRAPH),
                self._count("graph", "missing", "memories neither in the graph nor waiting for it", _REINDEX_GRAPH),
                self._count("upkeep", "states_off", "memories whose superseded state is off", "Link them anew."),
                self._count("upkeep", "without_revision", "memories without their revision", "Restore a backup."),
                self._audit(),
            )

    def _in_place(self) -> Finding:
        try:
            self._database.check_in_place()
        except StoreError as error:
            return Finding(check="file in its place", ok=False, detail=str(error), remedy="Open the store again.")
        return Finding(check="file in its place", ok=True, detail="yes")

    def _integrity(self) -> Finding:
        answer = self._database.read().execute("PRAGMA integrity_check").fetchone()[0]
        remedy = None if answer == "ok" else "Restore a backup with `trivet backup --restore FILE`."
        return Finding(check="database file", ok=answer == "ok", detail=answer, remedy=remedy)

    def _lexical_structure(self) -> Finding:
        try:
            with self._database.write() as connection:
                connection.execute(queries("lexical")["integrity"])
        except StoreError as error:
            return Finding(check="lexical index", ok=False, detail=str(error), remedy=_REINDEX_LEXICAL)
        return Finding(check="lexical index", ok=True, detail="sound")

    def _audit(self) -> Finding:
        broken = broken_links(self._database.read())
        detail = f"{broken} entries were changed or removed" if broken else "unbroken"
        remedy = "Compare with a backup: somebody wrote into the file by hand." if broken else None
        return Finding(check="audit record", ok=not broken, detail=detail, remedy=remedy)

    def _count(self, file: str, name: str, what: str, remedy: str) -> Finding:
        count = int(self._database.read().execute(queries(file)[name]).fetchone()[0])
        return Finding(
            check=what, ok=not count, detail=str(count) if count else "none", remedy=remedy if count else None
        )
