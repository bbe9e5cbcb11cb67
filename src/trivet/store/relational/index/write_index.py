"""Writing a store's index file in batches, since a store may be larger than memory."""

from __future__ import annotations

import logging
from array import array
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.analyse.terms import hashed
from trivet.common.mapped_arrays import ArrayWriter
from trivet.errors import EmbedderError
from trivet.store.relational.changes import MAX_CHANGES_APPLIED
from trivet.store.relational.database import StoreDatabase, StorePart
from trivet.store.relational.index.graph_index import read_network
from trivet.store.relational.index.index_files import (
    STATES,
    IndexHeader,
    flat_graph,
    to_microseconds,
)
from trivet.store.relational.index.vector_matrix import (
    MIN_SPARE_ROWS,
    SPARE_ROWS_SHARE,
    dtype_for,
    reshape_passages,
    sign_codes,
)
from trivet.types import Finding

if TYPE_CHECKING:
    from trivet.store.records import Model
    from trivet.store.relational.index.vector_index import VectorIndex


ROWS = 50_000
WORDS = 4_000_000


def write_index(
    writer: ArrayWriter, database: StoreDatabase, vectors: VectorIndex, mark: str
) -> IndexHeader:
    with database.snapshot() as connection:
        row = connection.execute(connection.sql("memories")["last_change"]).fetchone()
        held = _write_memories(writer, database)
        _write_words(writer, database)
        ids = database.all_ids(fresh=True)
        if ids is not None:
            writer.add("memory.ids", ids)
        for name, array_of_graph in flat_graph(read_network(database)).items():
            writer.add(name, array_of_graph)
        model = next((model for model in vectors.stored(connection) if model.serving), None)
        if model is not None and not vectors.is_in_memory(model):
            model = None
        if model is not None:
            _write_vectors(writer, vectors, model)
    return IndexHeader(
        mark, database.schema, int(row[0]) if row else 0, model.model if model else 0, held
    )


def _write_memories(writer: ArrayWriter, database: StoreDatabase) -> int:
    """Add an entry for the key -1 of removed rows; return the memory count."""
    size = int(database.read().execute(database.sql("visible")["highest_key"]).fetchone()[0]) + 2
    lengths, states, scopes = (
        np.zeros(size, np.float32),
        np.zeros(size, np.uint8),
        np.zeros(size, np.int32),
    )
    created, importances = np.zeros(size, np.int64), np.zeros(size)
    names: defaultdict[str, int] = defaultdict(count().__next__)
    for rows in database.batches(database.sql("visible")["columns"], ROWS):
        keys = np.array([row[0] for row in rows], np.int64)
        lengths[keys] = [row[1] for row in rows]
        states[keys] = [STATES[row[2]] for row in rows]
        scopes[keys] = [names[row[3]] for row in rows]
        created[keys] = to_microseconds([row[4] for row in rows])
        importances[keys] = [row[5] for row in rows]
    writer.add("memory.lengths", lengths)
    writer.add("memory.states", states)
    writer.add("memory.scopes", scopes)
    writer.add("memory.created", created)
    writer.add("memory.importances", importances)
    writer.add(
        "memory.scope_names", np.frombuffer(msgspec.json.encode(list(names) or [""]), np.uint8)
    )
    return int(np.count_nonzero(states))


def _write_words(writer: ArrayWriter, database: StoreDatabase) -> None:
    """Order by hash, for bisection."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    terms, places, times = array("i"), array("i"), array("i")
    for rows in database.batches(database.sql("lexical")["documents"], ROWS):
        for row in rows:
            for field, text in enumerate(row[1:]):
                if text:
                    words = text.split(" ")
                    terms.extend([numbers[word] for word in words])
                    places.append(row[0] * 8 + field)
                    times.append(len(words))
    hashes = np.fromiter(map(hashed, numbers), np.uint64, len(numbers))
    by_hash = np.argsort(hashes, kind="stable")
    ranks = np.empty(len(hashes), np.int32)
    ranks[by_hash] = np.arange(len(hashes), dtype=np.int32)
    ranked = ranks[np.frombuffer(terms, np.int32)]
    del terms, numbers
    starts = np.zeros(len(hashes) + 1, np.int64)
    np.cumsum(np.bincount(ranked, minlength=len(hashes)), out=starts[1:])
    writer.add("words.terms", hashes[by_hash])
    writer.add("words.starts", starts)
    writer.add("words.places", _by_term(ranked, starts, places, times))


def _by_term(
    ranked: NDArray[np.int32], starts: NDArray[np.int64], places: Any, times: Any
) -> NDArray[np.int32]:
    """Append sorted batches: sorting all at once takes five times the result's memory."""
    where = np.repeat(np.frombuffer(places, np.int32), np.frombuffer(times, np.int32))
    sorted_, ends = np.empty(len(ranked), np.int32), starts[:-1].copy()
    for start in range(0, len(ranked), WORDS):
        some = ranked[start : start + WORDS]
        order = np.argsort(some, kind="stable")
        found, firsts, counts = np.unique(some[order], return_index=True, return_counts=True)
        behind = np.arange(len(some)) - np.repeat(firsts, counts)
        sorted_[np.repeat(ends[found], counts) + behind] = where[start : start + WORDS][order]
        ends[found] += counts
    return sorted_


def _write_vectors(writer: ArrayWriter, vectors: VectorIndex, model: Model) -> None:
    size = vectors.count(model)
    room, kind = size // SPARE_ROWS_SHARE + MIN_SPARE_ROWS, dtype_for(size, model.dimension)
    keys, ordinals = np.full(size + room, -1, np.int64), np.zeros(size + room, np.int64)
    codes = np.zeros((-(-model.dimension // 64), size + room), np.uint64)

    def batches() -> Iterator[NDArray[np.floating]]:
        at = 0
        for rows in vectors.all_passages(model):
            given = reshape_passages(rows.vectors, len(rows.keys), model.dimension)
            stop = at + len(rows.keys)
            keys[at:stop], ordinals[at:stop], codes[:, at:stop] = (
                rows.keys,
                rows.ordinals,
                sign_codes(given).T,
            )
            at = stop
            yield given.astype(kind)
        yield np.zeros((room, model.dimension), kind)

    writer.add_chunks("vectors.vectors", np.dtype(kind), (size + room, model.dimension), batches())
    held = keys[:size]
    starts = np.searchsorted(held, np.arange(int(held[-1]) + 2 if size else 1)).astype(np.int32)
    chances = np.zeros(size + room, np.float32)
    chances[:size] = np.log(np.diff(starts)[held])
    writer.add("vectors.keys", keys)
    writer.add("vectors.ordinals", ordinals)
    writer.add("vectors.codes", codes)
    writer.add("vectors.chances", chances)
    writer.add("vectors.starts", starts)


logger = logging.getLogger("trivet.store")

# Smaller stores load just as fast from the database (docs/decisions/0037).
MIN_MEMORIES = 2_000
# Each new process applies these changes, and forgotten memories are still in the file.
RENEW_AFTER_CHANGES = 500
RENEW_AFTER_SECONDS = 86_400.0


class IndexFileMaintenance(StorePart):
    file = "maintenance"

    def __init__(self, database: StoreDatabase, vectors: VectorIndex) -> None:
        super().__init__(database)
        self._whole = database
        self._vectors = vectors

    def renew(self, only_if_missing: bool) -> bool:
        try:
            self._whole.index_files.tidy()
            if not self._is_due(only_if_missing):
                return False

            return self._whole.index_files.renew(
                lambda writer, mark: write_index(writer, self._whole, self._vectors, mark)
            )
        # A full or read-only disk, or a malformed row: recalls need no file.
        except (OSError, EmbedderError, ValueError) as error:
            logger.info("The index file of %s cannot be written: %s", self._database.name, error)
            return False

    def finding(self, whole: bool) -> Finding:
        """Check the file; with `whole`, verify checksums and discard it if damaged."""
        check, index = "index file", self._whole.index_files.opened()
        if index is None:
            return Finding(
                check=check, ok=True, detail="none; indexes are loaded from the database"
            )
        damaged = index.damaged() if whole else []
        if damaged:
            self._whole.index_files.discard()
            detail = f"damaged ({', '.join(damaged)}) and discarded"
            remedy = "Trivet rewrites it automatically. Check the disk: it may be failing."
            return Finding(check=check, ok=False, detail=detail, remedy=remedy)
        return Finding(check=check, ok=True, detail=f"of {index.facts.memories:,} memories")

    def _is_due(self, only_if_missing: bool) -> bool:
        row = self._row("last_numbers")
        if row["memories"] < MIN_MEMORIES:
            return False
        index = self._whole.mapped_index()
        behind = MAX_CHANGES_APPLIED + 1 if index is None else row["changes"] - index.sequence
        if only_if_missing:
            return bool(behind > MAX_CHANGES_APPLIED)
        return bool(
            behind > RENEW_AFTER_CHANGES
            or (index is not None and behind and index.age_seconds() > RENEW_AFTER_SECONDS)
        )
