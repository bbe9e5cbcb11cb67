"""The vectors of one model in memory: searched by sign bits, rescored exactly.

A row is one passage. The sign of each dimension makes a code of dimension / 8 bytes; the Hamming distance of codes
picks a generous shortlist in about a millisecond for 100,000 passages, whose cosines are then computed in full. Stores
smaller than the shortlist are searched exactly by the same code.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.common.bounded_cache import MIB
from trivet.common.threads import worker_cores
from trivet.errors import EmbedderError

# Rescored exactly: docs/decisions/0004 has the recall this reaches and what it costs.
SHORTLIST = 1_000
# Up to this many visible passages the full product is as fast as the codes.
EXACT_SEARCH_MAX_ROWS = 3_000
# Vectors of a shortlist collected at a time: 200 kB of them.
GATHER_BATCH_ROWS = 128
# Codes compared at a time: half a megabyte of differences.
BLOCK = 65_536
# A core more is asked for no fewer rows: to wake a thread takes as long as some thousand.
MIN_ROWS_PER_CORE = 100_000
# Among so many times the depth of best passages there are nearly always enough different memories.
LIKELY_FACTOR = 2


# Arrays in a file have room for so much more than they hold, as a share and at least: what is added is then written
# into memory of the process's own page by page, and nothing is copied.
SPARE_ROWS_SHARE = 32
MIN_SPARE_ROWS = 1_024

# Rows from which the deviation of a query's scores is told.
SAMPLE_ROWS = 1_000

# As vectors are stored, or twice as large and ready to multiply.
VectorDtype = type[np.float16] | type[np.float32]
# Up to so many bytes vectors are kept ready to multiply: about 170,000 passages of the bundled model.
FLOAT32_MAX_BYTES = 256 * MIB


def dtype_for(passages: int, dimension: int) -> VectorDtype:
    return np.float32 if 4 * passages * dimension <= FLOAT32_MAX_BYTES else np.float16


def bytes_per_passage(dimension: int) -> int:
    """Of half-precision numbers, with the code and where it belongs."""
    return 2 * dimension + -(-dimension // 64) * 8 + 16


class MatrixMatches(msgspec.Struct, frozen=True):
    """Parallel arrays: one entry a memory, its best passage, best first. Ties at the cut are all in: ids decide."""

    keys: NDArray[np.int64]
    ordinals: NDArray[np.int64]
    scores: NDArray[np.float32]


class MatrixArrays(msgspec.Struct, frozen=True):
    """A row a passage, with room to grow. Replaced whole when full, so that a search keeps what it started with."""

    keys: NDArray[np.int64]
    ordinals: NDArray[np.int64]
    vectors: NDArray[np.floating]
    codes: NDArray[np.uint64]
    # Of how many passages a row's memory consists, as a logarithm.
    chances: NDArray[np.float32]

    def head(self, size: int) -> MatrixArrays:
        first = (self.keys[:size], self.ordinals[:size], self.vectors[:size])
        return MatrixArrays(*first, self.codes[:, :size], self.chances[:size])


class _VisibleRows(msgspec.Struct):
    """Which rows a mask lets through, as long as the matrix is in this state, and the vectors of some of them."""

    mask: NDArray[np.bool_]
    state: tuple[int, int]
    rows: NDArray[np.int64]
    hidden: NDArray[np.int64]  # the others
    sample: NDArray[np.float32] | None = None


class Matrix:
    """Grows by appending; a removed row keeps its place with key -1 until the next reload."""

    def __init__(self, dimension: int, kind: VectorDtype = np.float32) -> None:
        self.dimension = dimension
        self._kind = kind
        self.size = 0
        self.removed = 0
        self._highest = -1
        self._last = _VisibleRows(
            np.zeros(0, bool), (0, 0), np.zeros(0, np.int64), np.zeros(0, np.int64)
        )
        self._words = -(-dimension // 64)
        # Where the rows of a mapped memory begin, by key; rows that were added since are in the dictionary.
        self._starts = np.zeros(0, np.int32)
        self.is_mapped = False  # its arrays are pages of a file, which the system shares and takes back as it likes
        self._added: dict[int, list[int]] = {}
        self._arrays = self._empty(1024)

    @classmethod
    def mapped(cls, arrays: MatrixArrays, starts: NDArray[np.int32]) -> Matrix:
        """Over arrays out of a file: rows in the order of their keys, with room for more, and where those of each key
        begin. What is added or removed later is this process's own."""
        matrix = cls(arrays.vectors.shape[1], arrays.vectors.dtype.type)
        matrix._arrays, matrix._starts, matrix.is_mapped = arrays, starts, True
        matrix.size = int(starts[-1])
        matrix._highest = len(starts) - 2
        return matrix

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in msgspec.structs.astuple(self._arrays))

    def add(
        self, keys: Sequence[int], ordinals: Sequence[int], vectors: NDArray[np.floating]
    ) -> None:
        start, stop = self.size, self.size + len(keys)
        if stop > len(self._arrays.keys):
            self._grow(max(stop, len(self._arrays.keys) * 3 // 2))
        arrays = self._arrays
        arrays.keys[start:stop] = keys
        arrays.ordinals[start:stop] = ordinals
        arrays.vectors[start:stop] = vectors
        arrays.codes[:, start:stop] = sign_codes(vectors).T
        for row, key in enumerate(keys, start):
            self._added.setdefault(key, []).append(row)
        for key in {key for key, ordinal in zip(keys, ordinals, strict=True) if ordinal}:
            rows = self._rows_of(key)
            arrays.chances[rows] = np.log(len(rows))
        self._highest = max(self._highest, *keys)
        self.size = stop

    def remove(self, key: int) -> None:
        rows = self._rows_of(key)
        self._added.pop(key, None)
        self._arrays.keys[rows] = -1
        self.removed += len(rows)

    def holds(self, key: int) -> bool:
        return bool(self._rows_of(key))

    def _rows_of(self, key: int) -> list[int]:
        added = self._added.get(key, [])
        if not 0 <= key < len(self._starts) - 1:
            return added
        mapped = range(int(self._starts[key]), int(self._starts[key + 1]))
        return [*(row for row in mapped if self._arrays.keys[row] == key), *added]

    def search(
        self, query: NDArray[np.float32], mask: NDArray[np.bool_], depth: int, chance: float = 0.0
    ) -> MatrixMatches:
        """With `chance` a memory's best passage loses what the best of so many has by chance (see `passage_count_penalty`)."""
        size = self.size  # read before the arrays: they only ever grow
        arrays = self._arrays.head(size)
        seen = self._visible_rows(arrays, mask)
        rows = seen.rows
        if len(rows) > EXACT_SEARCH_MAX_ROWS:
            rows = _shortlist(arrays.codes, sign_codes(query[None, :])[0], seen)
        # All rows in place need no copy, which costs more than the product.
        scores = (
            dot_products(arrays.vectors, query)
            if len(rows) == size
            else _dot_products_of_rows(arrays.vectors, rows, query)
        )
        if chance and arrays.chances[rows].any():
            scores -= passage_count_penalty(
                chance, _deviation(arrays.vectors, query, seen), arrays.chances[rows]
            )
        return _best_passages(arrays.keys[rows], arrays.ordinals[rows], scores, depth)

    def _visible_rows(self, arrays: MatrixArrays, mask: NDArray[np.bool_]) -> _VisibleRows:
        """Kept while neither the mask nor the rows change, as from one recall to the next of the same scope."""
        last, state = self._last, (len(arrays.keys), self.removed)
        if last.mask is not mask or last.state != state:
            seen = self._seen(arrays.keys, mask)
            last = self._last = _VisibleRows(
                mask, state, np.flatnonzero(seen), np.flatnonzero(~seen)
            )
        return last

    def _seen(self, keys: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The mask ends with False, which is where the key -1 of a removed row leads."""
        if self._highest < len(mask) - 1:
            return np.take(mask, keys)
        inside = (keys >= 0) & (keys < len(mask))  # a memory newer than the mask is not in it yet
        seen: NDArray[np.bool_] = inside & mask[np.where(inside, keys, 0)]
        return seen

    def _grow(self, capacity: int) -> None:
        old, grown, size = self._arrays, self._empty(capacity), self.size
        grown.keys[:size], grown.ordinals[:size] = old.keys[:size], old.ordinals[:size]
        grown.vectors[:size], grown.codes[:, :size] = old.vectors[:size], old.codes[:, :size]
        grown.chances[:size] = old.chances[:size]
        self._arrays, self.is_mapped = grown, False

    def _empty(self, capacity: int) -> MatrixArrays:
        return MatrixArrays(
            np.full(capacity, -1, np.int64),
            np.zeros(capacity, np.int64),
            np.zeros((capacity, self.dimension), self._kind),
            np.zeros((self._words, capacity), np.uint64),
            np.zeros(capacity, np.float32),
        )


def _shortlist(
    codes: NDArray[np.uint64], code: NDArray[np.uint64], seen: _VisibleRows
) -> NDArray[np.int64]:
    """The rows seen whose codes are nearest. To collect the codes of some rows takes longer than to compare all, unless
    most are hidden."""
    compares_all = len(seen.hidden) <= len(seen.rows)
    distances, counts = _distances(codes if compares_all else codes[:, seen.rows], code)
    if compares_all:
        counts -= np.bincount(distances[seen.hidden], minlength=len(counts))
        distances[seen.hidden] = len(counts)
    limit = int(np.searchsorted(np.cumsum(counts), SHORTLIST))
    near = np.flatnonzero(distances <= limit)
    return near if compares_all else seen.rows[near]


def _distances(
    codes: NDArray[np.uint64], code: NDArray[np.uint64]
) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """Of each row, and how many rows have each distance. Many rows are shared out between the cores."""
    distances = np.zeros(codes.shape[1], np.uint16)
    shares = min(worker_cores(), len(distances) // MIN_ROWS_PER_CORE)
    if shares <= 1:
        return distances, _compare(codes, code, distances)
    cuts = np.linspace(0, len(distances), shares + 1).astype(int).tolist()
    parts = [(codes[:, start:stop], code, distances[start:stop]) for start, stop in pairwise(cuts)]
    beside = [_thread_pool().submit(_compare, *part) for part in parts[1:]]
    return distances, sum((one.result() for one in beside), start=_compare(*parts[0]))


def _compare(
    codes: NDArray[np.uint64], code: NDArray[np.uint64], distances: NDArray[np.uint16]
) -> NDArray[np.int64]:
    """A block at a time, so that what is between stays in the processor's cache."""
    size = min(BLOCK, len(distances))
    differing, bits = np.empty(size, np.uint64), np.empty(size, np.uint8)
    for start in range(0, len(distances), BLOCK):
        block = distances[start : start + BLOCK]
        for word, own in zip(codes, code, strict=True):
            np.bitwise_xor(word[start : start + BLOCK], own, out=differing[: len(block)])
            block += np.bitwise_count(differing[: len(block)], out=bits[: len(block)])
    return np.bincount(distances, minlength=64 * len(codes) + 1)


@cache
def _thread_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(worker_cores(), thread_name_prefix="trivet-codes")


def sign_codes(vectors: NDArray[np.floating]) -> NDArray[np.uint64]:
    """A row of bits for each vector: which of its dimensions are positive."""
    words = -(-vectors.shape[1] // 64)
    bits = np.zeros((len(vectors), words * 64), bool)
    bits[:, : vectors.shape[1]] = vectors > 0
    return np.packbits(bits, axis=1).view(np.uint64)


def to_float32(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Ready to multiply. What `astype` says of halves that are finite, in half of its time: their bits are put where a
    single has them, and the exponent is set right by a product."""
    if vectors.dtype != np.float16:
        return vectors.astype(np.float32, copy=False)
    bits = np.ascontiguousarray(vectors).view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= np.int32(
        -0x70002000
    )  # the sign, which was widened with the number, once, and the 15 others
    singles = bits.view(np.float32)
    singles *= np.float32(2.0**112)
    return singles


def dot_products(vectors: NDArray[np.floating], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of each row with the query, row by row.

    As one product of a matrix it would wake a thread of the BLAS for every core, and each then waits in a loop for more
    work: 8 ms of processor time a recall, beside the model. A row's score would also depend on the rows beside it.
    """
    found: NDArray[np.float32] = np.vecdot(to_float32(vectors), query)
    return found


def _dot_products_of_rows(
    vectors: NDArray[np.floating], rows: NDArray[np.int64], query: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Of some rows, a few at a time: what was collected is still in the processor's cache when it is multiplied."""
    found = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), GATHER_BATCH_ROWS):
        some = rows[start : start + GATHER_BATCH_ROWS]
        found[start : start + GATHER_BATCH_ROWS] = dot_products(vectors.take(some, axis=0), query)
    return found


def reshape_passages(
    vectors: NDArray[np.float16], count: int, dimension: int
) -> NDArray[np.float16]:
    """Vectors as they were read, a row each."""
    if vectors.size != count * dimension:
        raise EmbedderError(
            f"Stored vectors do not have {dimension} dimensions. Run `trivet reindex --vectors`."
        )
    return vectors.reshape(-1, dimension)


def _deviation(
    vectors: NDArray[np.floating], query: NDArray[np.float32], seen: _VisibleRows
) -> float:
    if (
        seen.sample is None
    ):  # rows from all over the matrix take ten times as long to collect as to multiply
        seen.sample = to_float32(vectors[seen.rows[:: -(-len(seen.rows) // SAMPLE_ROWS)]])
    return float(dot_products(seen.sample, query).std())


def passage_count_penalty(
    chance: float, deviation: float, logarithms: NDArray[np.float32]
) -> NDArray[np.float32]:
    """What the best of a memory's passages is better by, only because there are so many of them.

    The scores of passages that have nothing to do with a query fall off about exponentially. The best of n of them lies
    by ln(n) such steps higher than a single one; a step is a share of the scores' deviation, chosen in
    docs/decisions/0031. Uncorrected, every question finds long memories first.
    """
    return (chance * deviation * logarithms).astype(np.float32)


def _best_passages(
    keys: NDArray[np.int64], ordinals: NDArray[np.int64], scores: NDArray[np.float32], depth: int
) -> MatrixMatches:
    likely = depth * LIKELY_FACTOR
    if len(scores) > likely:
        top = np.argpartition(-scores, likely)[:likely]
        found = _ordered(keys[top], ordinals[top], scores[top], depth)
        # Enough different memories, and none outside can be better than the last of them or tie with it.
        if len(found.keys) >= depth and found.scores[-1] > scores[top].min():
            return found
    return _ordered(keys, ordinals, scores, depth)


def _ordered(
    keys: NDArray[np.int64], ordinals: NDArray[np.int64], scores: NDArray[np.float32], depth: int
) -> MatrixMatches:
    order = np.argsort(-scores, kind="stable")
    seen: set[int] = set()
    first = []
    for place, key in enumerate(keys[order].tolist()):
        if key not in seen:
            seen.add(key)
            first.append(place)
    best = order[first]
    if len(best) > depth:
        best = best[scores[best] >= scores[best[depth - 1]]]
    return MatrixMatches(keys[best], ordinals[best], scores[best])
