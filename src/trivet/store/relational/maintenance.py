"""Rebuilding of derived data, and the checks of `trivet doctor` that all stores share."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from trivet import memory_fields
from trivet.common.ids import new_id
from trivet.common.threads import prepared_type
from trivet.store.records import Document, Model, Passage, VersionedComponent
from trivet.store.relational.changes import MODELS_KEY
from trivet.store.relational.database import StoreDatabase, StorePart, WriteTransaction
from trivet.store.relational.index.lexical import encode_passage_terms
from trivet.store.relational.index.vector_index import VectorIndex
from trivet.store.relational.index.write_index import IndexFileMaintenance
from trivet.store.relational.tables.ledgers import count_broken_entries
from trivet.store.relational.tables.memory_rows import with_branches, write_lexical
from trivet.types import Finding, Memory

SHOWN = 3
# Read in this order; other tables are read whole.
MEMORY_COLUMNS = memory_fields.columns()
REVISION_COLUMNS = ("memory", "revision", "snapshot")
COLUMNS: Mapping[str, Sequence[str]] = {
    "memory": MEMORY_COLUMNS,
    "revision": REVISION_COLUMNS,
    "proposal": ("id", "tags"),
    "vault": ("name", "options"),
}


class UndecodableText(msgspec.Struct, frozen=True):
    """A value that is not valid UTF-8."""


class RowCheck:
    """Problems found in rows; check memories before their revisions."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.rows = 0
        # Hashes, since all texts may not fit.
        self._said: dict[tuple[int, int], int] = {}
        self._reads: Mapping[str, Callable[[Sequence[Any]], None]] = {
            "memory": self._memory,
            "revision": self._revision,
            "proposal": _list_of_texts,
            "vault": _object,
        }

    def check_rows(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        read = self._reads.get(table)
        for number, row in enumerate(rows, 1):
            self.rows += 1
            try:
                if any(isinstance(value, UndecodableText) for value in row):
                    raise ValueError("it holds invalid UTF-8")
                if read is not None:
                    read(row)
            except (ValueError, TypeError, msgspec.MsgspecError, RecursionError) as error:
                self.problems.append(f"{table}, row {number}: {error}")

    def _memory(self, row: Sequence[Any]) -> None:
        memory = memory_fields.to_memory(row)
        msgspec.json.decode(msgspec.json.encode(memory), type=prepared_type(Memory))
        self._said[row[0], memory.revision] = hash((memory.content, memory.title))

    def _revision(self, row: Sequence[Any]) -> None:
        key, number, snapshot = row
        memory = msgspec.json.decode(snapshot, type=prepared_type(Memory))
        said = self._said.pop((key, number), None)
        if said is not None and said != hash((memory.content, memory.title)):
            raise ValueError(f"memory {memory.id} differs from its last revision")


def summarize_problems(problems: Sequence[str]) -> str:
    more = f" and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
    return "; ".join(problems[:SHOWN]) + more


def _list_of_texts(row: Sequence[Any]) -> None:
    memory_fields.texts(row[1])


def _object(row: Sequence[Any]) -> None:
    msgspec.json.decode(row[1], type=prepared_type(dict[str, Any]))


_IDENTITY = "store"
REINDEX_LEXICAL = "Run `trivet reindex --lexical`."
_LINK_AGAIN = (
    "Make the link again: `trivet unlink NEW supersedes OLD`, "
    "then `trivet link NEW supersedes OLD`."
)
RESTORE = "Run `trivet backup --restore FILE` with a backup."
ROWS_READ = "rows that can be read"
_REINDEX_GRAPH = "Run `trivet reindex --graph`."
_REINDEX_VECTORS = "Run `trivet reindex --vectors`."
_SALT = "salt"
_SALT_BYTES = 32


class Maintenance(StorePart, ABC):
    file = "maintenance"

    def __init__(self, database: StoreDatabase, vectors: VectorIndex) -> None:
        super().__init__(database)
        self._whole = database
        self._vectors = vectors
        self._index = IndexFileMaintenance(database, vectors)

    @abstractmethod
    def backup(self, target: Path) -> None:
        """Write an embedded store's file, which appears only when complete."""

    def renew_index(self, only_if_missing: bool = False) -> bool:
        """Rewrite the index file if due; return whether it was.

        With `only_if_missing`, only if new processes have no usable one.
        """
        return self._index.renew(only_if_missing)

    def rebuild_lexical(self, documents: Iterator[tuple[Memory, Document]]) -> int:
        """Rebuild in one transaction; recalls use the old index meanwhile."""
        count = 0
        with self._database.write() as connection:
            connection.execute(connection.sql("lexical")["clear"])
            connection.execute(connection.sql("lexical")["clear_fingerprints"])
            for memory, document in documents:
                key = connection.execute(
                    connection.sql("memories")["by_id"], {"id": memory.id}
                ).fetchone()["key"]
                connection.execute(self._sql["set_derived"], {"key": key, **document.row_values})
                if memory.state != "deleted":
                    write_lexical(connection, key, with_branches(connection, key, document))
                    _describe_passages(connection, key, memory.content)
                connection.note_change(key)
                count += 1
        return count

    def rebuild_vectors(self, only: Model | None = None) -> int:
        """Queue all vectors again; the old ones serve until replaced."""
        with self._database.write() as connection:
            rows = connection.execute(connection.sql("vectors")["models"]).fetchall()
            for number in [only.model] if only else [row["model"] for row in rows]:
                connection.execute(connection.sql("jobs")["enqueue_model"], {"model": number})
            connection.note_change(MODELS_KEY)  # wakes workers that saw an empty queue
            return int(connection.execute(self._sql["count_jobs"]).fetchone()[0])

    def rebuild_graph(self) -> int:
        """Queue every memory for the rules; a language model's statements stay."""
        with self._database.write() as connection:
            for name in ("forget_hidden_mentions", "forget_hidden_statements", "forget_orphans"):
                connection.execute(connection.sql("graph")[name])
            connection.execute(connection.sql("graph")["enqueue_all"], {"reader": "rules"})
            connection.note_change(MODELS_KEY)
            return int(
                connection.execute(
                    connection.sql("graph")["pending"], {"reader": "rules"}
                ).fetchone()[0]
            )

    def salt(self) -> bytes:
        row = self._row("get_meta", name=_SALT)
        if row is None:
            with self._database.write() as connection:
                connection.execute(
                    self._sql["add_meta"], {"name": _SALT, "value": secrets.token_hex(_SALT_BYTES)}
                )
            row = self._row("get_meta", name=_SALT)
        return bytes.fromhex(row[0])

    def finish_erasing(self, of_any_size: bool = False) -> str | None:
        return self._whole.finish_erasing(of_any_size)

    def pending_erasure(self) -> str | None:
        return self._whole.pending_erasure()

    def identity(self) -> str:
        """Return the location with an id: containers may share a path."""
        row = self._row("get_meta", name=_IDENTITY)
        if row is None:
            with self._database.write() as connection:
                connection.execute(self._sql["add_meta"], {"name": _IDENTITY, "value": new_id()})
            row = self._row("get_meta", name=_IDENTITY)
        return f"{self._place()} [{row[0]}]"

    def _place(self) -> str:
        return self._database.name

    def set_version(self, maker: VersionedComponent, version: int) -> None:
        with self._database.write() as connection:
            connection.execute(self._sql["set_meta"], {"name": maker, "value": str(version)})

    def version(self, maker: VersionedComponent) -> int:
        row = self._row("get_meta", name=maker)
        return int(row[0]) if row else 0

    def findings(self, whole: bool = True) -> tuple[Finding, ...]:
        """Check the store; with `whole`, read every row."""
        with self._database.errors():
            return (
                self._count(
                    "lexical", "missing", "memories missing from the lexical index", REINDEX_LEXICAL
                ),
                self._count(
                    "lexical",
                    "orphans",
                    "entries of gone memories in the lexical index",
                    REINDEX_LEXICAL,
                ),
                self._count(
                    "vectors",
                    "orphans",
                    "vectors of deleted or sensitive memories",
                    _REINDEX_VECTORS,
                ),
                self._count(
                    "vectors",
                    "unaccounted",
                    "memories with neither vector nor job",
                    _REINDEX_VECTORS,
                ),
                self._count(
                    "graph", "orphans", "concepts of deleted or sensitive memories", _REINDEX_GRAPH
                ),
                self._count(
                    "graph", "unaccounted", "concepts that nothing mentions", _REINDEX_GRAPH
                ),
                self._count(
                    "graph",
                    "missing",
                    "memories neither in the graph nor waiting for it",
                    _REINDEX_GRAPH,
                ),
                self._count(
                    "maintenance",
                    "states_off",
                    "memories whose superseded state is off",
                    _LINK_AGAIN,
                ),
                self._count(
                    "maintenance", "without_revision", "memories without their revision", RESTORE
                ),
                self._audit(),
                self._erased(whole),
                self._index.finding(whole),
            )

    def _erased(self, whole: bool) -> Finding:
        pending = self.finish_erasing(of_any_size=whole)
        remedy = "End the long-running reads, then run `trivet doctor` again." if pending else None
        detail = pending or "gone from the files"
        return Finding(check="purged memories", ok=pending is None, detail=detail, remedy=remedy)

    def _audit(self) -> Finding:
        broken = count_broken_entries(self._database)
        detail = f"{broken} entries were changed or removed" if broken else "unbroken"
        remedy = (
            "Compare with a backup: the database was edited outside Trivet." if broken else None
        )
        return Finding(check="audit record", ok=not broken, detail=detail, remedy=remedy)

    def _count(self, file: str, name: str, what: str, remedy: str) -> Finding:
        count = int(self._database.read().execute(self._database.sql(file)[name]).fetchone()[0])
        return Finding(
            check=what,
            ok=not count,
            detail=str(count) if count else "none",
            remedy=remedy if count else None,
        )


def _describe_passages(connection: WriteTransaction, key: int, content: str) -> None:
    queries = connection.sql("vectors")
    rows = [
        tuple(row) for row in connection.execute(queries["passages_of"], {"memory": key}).fetchall()
    ]
    for model, cut in groupby(rows, key=lambda row: row[0]):
        passages = [Passage(*row[1:]) for row in cut]
        for passage, terms in zip(passages, encode_passage_terms(content, passages), strict=True):
            place = {"memory": key, "model": model, "ordinal": passage.ordinal}
            connection.execute(queries["set_terms"], {**place, "terms": terms})


def rows_finding(check: RowCheck) -> Finding:
    ok = not check.problems
    detail = f"all {check.rows} database rows" if ok else summarize_problems(check.problems)
    return Finding(check=ROWS_READ, ok=ok, detail=detail, remedy=None if ok else RESTORE)
