"""The indexes of a store as they were at one change, mapped out of a file beside it: nothing is read or built.

What changed since is taken in by the caches, as if they had been loaded at that change. The database stays the only
truth: without the file, or where anything about it is doubtful, caches are loaded from the database.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from itertools import compress
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.analyse.term_hash import hashed
from trivet.graph.network import Edges, Keys, Network
from trivet.mapped_arrays import Mapped, map_arrays
from trivet.store.records import Model
from trivet.store.relational.matrix import Matrix, MatrixArrays
from trivet.types import Filter

# What is in the file, and in which version: another one is not read.
KIND = b"TRIVETI3"
# With more changes since than this, everything is loaded from the database: to take them in would take as long.
MOST_CHANGES = 2_000

# The number of each state; 0 is no memory.
STATES = {"active": 1, "superseded": 2, "archived": 3, "deleted": 4}


class Facts(msgspec.Struct, frozen=True):
    """What an index file belongs to. `mark` is random: the database names the one file that it knows."""

    mark: str
    schema: int
    sequence: int  # the last change that is in it
    model: int  # whose vectors are in it; 0: none
    memories: int


class MappedIndex:
    def __init__(self, file: Path, mapped: Mapped) -> None:
        self._file = file
        self._mapped = mapped
        self._arrays = mapped.arrays
        self.facts = msgspec.convert(mapped.facts, Facts, strict=False)

    @classmethod
    def open(cls, file: Path) -> Self | None:
        """None where there is no such file, or none that can be used."""
        mapped = map_arrays(file, KIND)
        return None if mapped is None else cls(file, mapped)

    @property
    def sequence(self) -> int:
        return self.facts.sequence

    def age(self) -> float:
        """Seconds since it was written."""
        return time.time() - self._file.stat().st_mtime

    def damaged(self) -> list[str]:
        """The names of parts that are not as they were written. Reads the whole file."""
        return self._mapped.damaged()

    def matrix(self, model: Model) -> Matrix | None:
        """The vectors of a model, if they are in the file. Mapped anew, since a matrix writes into its arrays."""
        again = map_arrays(self._file, KIND) if model.model == self.facts.model else None
        if again is None or again.facts != self._mapped.facts:  # it was removed meanwhile
            return None
        parts = {name: again.arrays[f"vectors.{name}"] for name in MatrixArrays.__struct_fields__}
        return Matrix.mapped(MatrixArrays(**parts), again.arrays["vectors.starts"])

    def network(self) -> Network:
        links = _linked(self._arrays["links.sources"], self._arrays["links.targets"])
        return Network(self._edges("memories"), self._edges("concepts"), links)

    def occurrences(self, term: str) -> NDArray[np.int32]:
        """Where a term stands, as key * 8 + field, rising; one entry for each time."""
        terms, wanted = self._arrays["words.terms"], np.uint64(hashed(term))
        at = int(np.searchsorted(terms, wanted))
        if at == len(terms) or terms[at] != wanted:
            return np.zeros(0, np.int32)
        start, stop = self._arrays["words.starts"][at : at + 2].tolist()
        found: NDArray[np.int32] = self._arrays["words.places"][start:stop]
        return found

    def shown(self, filter: Filter) -> tuple[NDArray[np.bool_], NDArray[np.float32], NDArray[np.float64]] | None:
        """By key, which memories a filter lets through, lengths and importances; None where the database decides."""
        if not is_told(filter):
            return None
        after, before = filter.created_after, filter.created_before
        wanted = np.zeros(len(STATES) + 1, bool)
        wanted[[STATES[state] for state in filter.states]] = True
        mask: NDArray[np.bool_] = wanted[self._arrays["memory.states"]]
        if filter.scope is not None:
            mask &= self._in_scope(filter.scope)[self._arrays["memory.scopes"]]
        created = self._arrays["memory.created"]
        if after is not None:
            mask &= created >= microseconds([after])[0]
        if before is not None:
            mask &= created < microseconds([before])[0]
        return mask, self._arrays["memory.lengths"], self._arrays["memory.importances"]

    def ids(self) -> NDArray[np.bytes_] | None:
        """By key; None in a file of before."""
        return self._arrays.get("memory.ids")

    def held(self, terms: Collection[str]) -> set[str]:
        """Those of the terms that any memory holds."""
        named = list(terms)
        wanted = np.fromiter(map(hashed, named), np.uint64, len(named))
        known = self._arrays["words.terms"]
        places = np.minimum(np.searchsorted(known, wanted), max(0, len(known) - 1))
        return set(compress(named, known[places] == wanted)) if len(known) else set()

    def _in_scope(self, scope: str) -> NDArray[np.bool_]:
        """By number, which scopes lie in this one."""
        names: list[str] = msgspec.json.decode(self._arrays["memory.scope_names"].tobytes())
        return np.array([name == scope or name.startswith(f"{scope}/") for name in names], bool)

    def _edges(self, nodes: str) -> Edges:
        return Edges(*(self._arrays[f"graph.{nodes}.{name}"] for name in Edges.__struct_fields__))


def is_told(filter: Filter) -> bool:
    """Whether the file can say what a filter lets through. Who may see a memory the database decides alone."""
    after, before = filter.created_after, filter.created_before
    return filter == Filter(scope=filter.scope, states=filter.states, created_after=after, created_before=before)


def microseconds(stamps: Sequence[str]) -> NDArray[np.int64]:
    """Moments as they are stored, which all end with Z, as numbers."""
    return np.array([stamp.removesuffix("Z") for stamp in stamps], "datetime64[us]").astype(np.int64)


def flat_graph(network: Network) -> dict[str, Any]:
    """The arrays of a network that has taken in no changes yet."""
    sides = {"memories": network.of_memory.edges, "concepts": network.of_concept.edges}
    edges = {
        f"graph.{nodes}.{name}": getattr(side, name) for nodes, side in sides.items() for name in side.__struct_fields__
    }
    sources = sorted(network.links)
    targets = [network.links[source] for source in sources]
    return {
        **edges,
        "links.sources": np.repeat(np.array(sources, np.int32), [len(one) for one in targets]),
        "links.targets": np.concatenate([np.zeros(0, np.int32), *targets]),
    }


def _linked(sources: Keys, targets: Keys) -> dict[int, Keys]:
    if not len(sources):
        return {}
    begins = np.flatnonzero(np.diff(sources, prepend=-1))
    return dict(zip(sources[begins].tolist(), np.split(targets, begins[1:]), strict=True))
