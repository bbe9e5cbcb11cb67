"""What `doctor` makes of each row: whether it can be read as an export or a recall would read it.

Rebuilding of derived data, and the checks behind `doctor` that every store makes.
"""

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
from trivet.store.relational.tables.access import count_broken_entries
from trivet.store.relational.tables.memory_rows import with_branches, write_lexical
from trivet.types import Finding, Memory

# Named in the finding; of the others their number.
SHOWN = 3
# What is read of these tables, in this order, so that a row can be understood; of the others everything.
MEMORY_COLUMNS = memory_fields.columns()
REVISION_COLUMNS = ("memory", "revision", "snapshot")
COLUMNS: Mapping[str, Sequence[str]] = {
    "memory": MEMORY_COLUMNS,
    "revision": REVISION_COLUMNS,
    "proposal": ("id", "tags"),
    "vault": ("name", "options"),
}


class UndecodableText(msgspec.Struct, frozen=True):
    """A value that is no text of UTF-8."""


class RowCheck:
    """Gathers what is wrong with rows. Memories come before revisions: the last of these must say the same."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.rows = 0
        self._said: dict[
            tuple[int, int], int
        ] = {}  # a digest of each, since all texts may not fit into memory
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
                    raise ValueError("it holds what is no text")
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
            raise ValueError(f"memory {memory.id} says something else than its last revision")


def summarize_problems(problems: Sequence[str]) -> str:
    more = f" and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
    return "; ".join(problems[:SHOWN]) + more


def _list_of_texts(row: Sequence[Any]) -> None:
    memory_fields.texts(row[1])


def _object(row: Sequence[Any]) -> None:
    msgspec.json.decode(row[1], type=prepared_type(dict[str, Any]))


_IDENTITY = "store"
REINDEX_LEXICAL = "Run `trivet reindex --lexical`."
_LINK_AGAIN = "Make the link again: `trivet unlink NEW supersedes OLD`, then `trivet link NEW supersedes OLD`."
RESTORE = "Run `trivet backup --restore FILE` with a backup."
ROWS_READ = "rows that can be read"
_REINDEX_GRAPH = "Run `trivet reindex --graph`."
_REINDEX_VECTORS = "Run `trivet reindex --vectors`."
# In the table of single values.
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
        """Everything into a file of the embedded store. The target appears only when it is whole."""

    def renew_index(self, only_if_missing: bool = False) -> bool:
        """Writes the index file of the store anew where that is due, and says whether it was.

        With `only_if_missing` only where new processes have none that they can use.
        """
        return self._index.renew(only_if_missing)

    def rebuild_lexical(self, documents: Iterator[tuple[Memory, Document]]) -> int:
        """Everything in one transaction: recalls go on with the old index until it is committed."""
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
        """Asks for every vector anew, of one model or of all. The old ones answer until each is replaced."""
        with self._database.write() as connection:
            rows = connection.execute(connection.sql("vectors")["models"]).fetchall()
            for number in [only.model] if only else [row["model"] for row in rows]:
                connection.execute(connection.sql("jobs")["enqueue_model"], {"model": number})
            connection.note_change(MODELS_KEY)  # who saw nothing waiting looks again
            return int(connection.execute(self._sql["count_jobs"]).fetchone()[0])

    def rebuild_graph(self) -> int:
        """Asks for every memory to be read anew; says how many. Statements of a language model stay."""
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
        """Random bytes of this store alone, made when they are first asked for."""
        row = self._row("get_meta", name=_SALT)
        if row is None:
            with self._database.write() as connection:
                connection.execute(
                    self._sql["add_meta"], {"name": _SALT, "value": secrets.token_hex(_SALT_BYTES)}
                )
            row = self._row("get_meta", name=_SALT)
        return bytes.fromhex(row[0])

    def finish_erasing(self, of_any_size: bool = False) -> str | None:
        """Takes what was purged out of the files too; what is still pending and why, or None."""
        return self._whole.finish_erasing(of_any_size)

    def pending_erasure(self) -> str | None:
        return self._whole.pending_erasure()

    def identity(self) -> str:
        """The store's place and a number of its own: two stores of one name in two containers are still two."""
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
        """With `whole` every row is read and understood, which takes seconds in a large store."""
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
        remedy = "End what reads for so long, then run `trivet doctor` again." if pending else None
        detail = pending or "gone from the files"
        return Finding(check="purged memories", ok=pending is None, detail=detail, remedy=remedy)

    def _audit(self) -> Finding:
        broken = count_broken_entries(self._database)
        detail = f"{broken} entries were changed or removed" if broken else "unbroken"
        remedy = (
            "Compare with a backup: somebody wrote into the database by hand." if broken else None
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
    """Stores the terms of a text's passages as this version makes them."""
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
    detail = f"all of {check.rows}" if ok else summarize_problems(check.problems)
    return Finding(check=ROWS_READ, ok=ok, detail=detail, remedy=None if ok else RESTORE)
