"""Reads a whole store for its index file, as of one moment: what `mapped_index.py` maps."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from trivet.analyse.term_hash import hashed
from trivet.store.relational.graph_cache import read_network
from trivet.store.relational.mapped_index import STATES, Facts, flat_graph, flat_matrix
from trivet.store.relational.vector_cache import matrix_of

if TYPE_CHECKING:
    from trivet.store.relational.database import Connection, StoreDatabase
    from trivet.store.relational.vector_index import VectorIndex


def read_index(database: StoreDatabase, vectors: VectorIndex, mark: str) -> tuple[Facts, dict[str, Any]]:
    """What the file is about, and its arrays."""
    with database.snapshot() as connection:
        row = connection.execute(connection.sql("memories")["last_change"]).fetchone()
        memories = _memories(connection)
        model = next((model for model in vectors.stored(connection) if model.serving), None)
        arrays = {**memories, **_words(connection), **flat_graph(read_network(database))}
        if model is not None:
            arrays |= flat_matrix(matrix_of(model, vectors.all_passages(model)))
    held = int(np.count_nonzero(memories["memory.states"]))
    return Facts(mark, database.schema, int(row[0]) if row else 0, model.model if model else 0, held), arrays


def _memories(connection: Connection) -> dict[str, Any]:
    """Arrays by key, with one entry more than there are keys: that is where the key -1 of a removed row leads."""
    rows = connection.execute(connection.sql("visible")["columns"]).fetchall()
    size = max((row[0] for row in rows), default=-1) + 2
    lengths, states, scopes = np.zeros(size, np.float32), np.zeros(size, np.uint8), np.zeros(size, np.int32)
    names: defaultdict[str, int] = defaultdict(count().__next__)
    keys = np.array([row[0] for row in rows], np.int64)
    lengths[keys] = [row[1] for row in rows]
    states[keys] = [STATES[row[2]] for row in rows]
    scopes[keys] = [names[row[3]] for row in rows]
    spelled = np.frombuffer(msgspec.json.encode(list(names) or [""]), np.uint8)
    return {
        "memory.lengths": lengths,
        "memory.states": states,
        "memory.scopes": scopes,
        "memory.scope_names": spelled,
    }


def _words(connection: Connection) -> dict[str, Any]:
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    terms, places, times = array("i"), array("q"), array("i")
    documents: Iterable[Any] = connection.execute(connection.sql("lexical")["documents"])
    for row in documents:
        for field, text in enumerate(row[1:]):
            if text:
                words = text.split(" ")
                terms.extend([numbers[word] for word in words])
                places.append(row[0] * 8 + field)
                times.append(len(words))
    return _by_term(list(numbers), terms, np.repeat(np.frombuffer(places, np.int64), np.frombuffer(times, np.int32)))


def _by_term(spelled: Sequence[str], terms: array[int], places: Any) -> dict[str, Any]:
    """Lists by term in the order of the terms' hashes, so that a term is found by bisection."""
    hashes = np.fromiter(map(hashed, spelled), np.uint64, len(spelled))
    by_hash = np.argsort(hashes, kind="stable")
    ranks = np.empty(len(spelled), np.int32)
    ranks[by_hash] = np.arange(len(spelled), dtype=np.int32)
    ranked = ranks[np.frombuffer(terms, np.int32)]
    order = np.argsort(ranked, kind="stable")  # places stay in the order of keys and fields
    starts = np.zeros(len(spelled) + 1, np.int64)
    np.cumsum(np.bincount(ranked, minlength=len(spelled)), out=starts[1:])
    return {
        "words.terms": hashes[by_hash],
        "words.starts": starts,
        "words.places": places[order].astype(np.int32),
    }
