"""The vectors of one model in memory, one row per passage.

Hamming distances between sign codes select a shortlist, in about a millisecond for 100,000
passages, which is then rescored exactly.
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

# docs/decisions/0004 has its recall and cost.
SHORTLIST = 1_000
# Below this the exact product is as fast.
EXACT_SEARCH_MAX_ROWS = 3_000
# Bounds a gather to 200 kB of vectors.
GATHER_BATCH_ROWS = 128
# Bounds a block to half a megabyte of differences.
BLOCK = 65_536
# Fewer rows are not worth another core: waking a thread costs as much as a few thousand.
MIN_ROWS_PER_CORE = 100_000
# Passages to fetch per wanted memory: twice as many nearly always belong to enough memories.
LIKELY_FACTOR = 2


# Spare room in mapped arrays, so that additions copy single pages and not the array.
SPARE_ROWS_SHARE = 32
MIN_SPARE_ROWS = 1_024

# Rows that estimate the deviation of a query's scores.
SAMPLE_ROWS = 1_000

# As stored, or twice as large and ready to multiply.
VectorDtype = type[np.float16] | type[np.float32]
# About 170,000 passages of the bundled model.
FLOAT32_MAX_BYTES = 256 * MIB


def dtype_for(passages: int, dimension: int) -> VectorDtype:
    return np.float32 if 4 * passages * dimension <= FLOAT32_MAX_BYTES else np.float16


def bytes_per_passage(dimension: int) -> int:
    """Count the float16 vector, code, key and ordinal."""
    return 2 * dimension + -(-dimension // 64) * 8 + 16


class MatrixMatches(msgspec.Struct, frozen=True):
    """Each memory's best passage, best first, with all ties at the cut."""

    keys: NDArray[np.int64]
    ordinals: NDArray[np.int64]
    scores: NDArray[np.float32]


class MatrixArrays(msgspec.Struct, frozen=True):
    """One row per passage; replaced when full: running searches keep theirs."""

    keys: NDArray[np.int64]
    ordinals: NDArray[np.int64]
    vectors: NDArray[np.floating]
    codes: NDArray[np.uint64]
    # Logarithm of the number of passages of the row's memory.
    chances: NDArray[np.float32]

    def head(self, size: int) -> MatrixArrays:
        first = (self.keys[:size], self.ordinals[:size], self.vectors[:size])
        return MatrixArrays(*first, self.codes[:, :size], self.chances[:size])


class _VisibleRows(msgspec.Struct):
    """Visible rows cached for one mask and matrix state."""

    mask: NDArray[np.bool_]
    state: tuple[int, int]
    rows: NDArray[np.int64]
    hidden: NDArray[np.int64]  # all other rows
    sample: NDArray[np.float32] | None = None


class Matrix:
    """Vectors in append order; a removed row has key -1 until the next reload."""

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
        # First row by key in a mapped file.
        self._starts = np.zeros(0, np.int32)
        self.is_mapped = False  # the arrays are file pages, shared and reclaimed by the system
        self._added: dict[int, list[int]] = {}
        self._arrays = self._empty(1024)

    @classmethod
    def mapped(cls, arrays: MatrixArrays, starts: NDArray[np.int32]) -> Matrix:
        """Return a matrix over mapped rows in key order; later changes stay private."""
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
        """Return the best memories; `chance` corrects for the number of passages."""
        size = self.size  # read before the arrays, which only grow
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
        last, state = self._last, (len(arrays.keys), self.removed)
        if last.mask is not mask or last.state != state:
            seen = self._seen(arrays.keys, mask)
            last = self._last = _VisibleRows(
                mask, state, np.flatnonzero(seen), np.flatnonzero(~seen)
            )
        return last

    def _seen(self, keys: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Apply the mask, which ends with False for removed rows (key -1)."""
        if self._highest < len(mask) - 1:
            return np.take(mask, keys)
        inside = (keys >= 0) & (keys < len(mask))  # the mask may predate the newest memories
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
    """Compare all codes unless most are hidden: gathering some is slower."""
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
    distances = np.zeros(codes.shape[1], np.uint16)
    shares = min(worker_cores(), len(distances) // MIN_ROWS_PER_CORE)
    if shares <= 1:
        return distances, _compare(codes, code, distances)
    cuts = np.linspace(0, len(distances), shares + 1).astype(int).tolist()
    parts = [(codes[:, start:stop], code, distances[start:stop]) for start, stop in pairwise(cuts)]
    futures = [_thread_pool().submit(_compare, *part) for part in parts[1:]]
    return distances, sum((future.result() for future in futures), start=_compare(*parts[0]))


def _compare(
    codes: NDArray[np.uint64], code: NDArray[np.uint64], distances: NDArray[np.uint16]
) -> NDArray[np.int64]:
    """Work in blocks that stay in the processor's cache."""
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
    words = -(-vectors.shape[1] // 64)
    bits = np.zeros((len(vectors), words * 64), bool)
    bits[:, : vectors.shape[1]] = vectors > 0
    return np.packbits(bits, axis=1).view(np.uint64)


def to_float32(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Convert finite values in half the time of `astype`.

    Move the bits of a half to their place in a single; a product corrects the exponent.
    """
    if vectors.dtype != np.float16:
        return vectors.astype(np.float32, copy=False)
    bits = np.ascontiguousarray(vectors).view(np.int16).astype(np.int32)
    bits <<= 13
    # The sign, which widening copied, and the 15 other bits.
    bits &= np.int32(-0x70002000)
    singles = bits.view(np.float32)
    singles *= np.float32(2.0**112)
    return singles


def dot_products(vectors: NDArray[np.floating], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Multiply row by row.

    A matrix product wakes a BLAS thread per core: 8 ms of processor time a recall. A row's score
    would also depend on the other rows.
    """
    found: NDArray[np.float32] = np.vecdot(to_float32(vectors), query)
    return found


def _dot_products_of_rows(
    vectors: NDArray[np.floating], rows: NDArray[np.int64], query: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Gather few rows at a time, so that they are still cached when multiplied."""
    found = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), GATHER_BATCH_ROWS):
        some = rows[start : start + GATHER_BATCH_ROWS]
        found[start : start + GATHER_BATCH_ROWS] = dot_products(vectors.take(some, axis=0), query)
    return found


def reshape_passages(
    vectors: NDArray[np.float16], count: int, dimension: int
) -> NDArray[np.float16]:
    if vectors.size != count * dimension:
        raise EmbedderError(
            f"Stored vectors do not have {dimension} dimensions. Run `trivet reindex --vectors`."
        )
    return vectors.reshape(-1, dimension)


def _deviation(
    vectors: NDArray[np.floating], query: NDArray[np.float32], seen: _VisibleRows
) -> float:
    # Gathering scattered rows takes ten times as long as multiplying.
    if seen.sample is None:
        seen.sample = to_float32(vectors[seen.rows[:: -(-len(seen.rows) // SAMPLE_ROWS)]])
    return float(dot_products(seen.sample, query).std())


def passage_count_penalty(
    chance: float, deviation: float, logarithms: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the advantage that a memory's best score has from its many passages.

    Scores of unrelated passages fall off about exponentially, so the best of n is ln(n) steps
    higher (docs/decisions/0031). Uncorrected, every query finds long memories first.
    """
    return (chance * deviation * logarithms).astype(np.float32)


def _best_passages(
    keys: NDArray[np.int64], ordinals: NDArray[np.int64], scores: NDArray[np.float32], depth: int
) -> MatrixMatches:
    likely = depth * LIKELY_FACTOR
    if len(scores) > likely:
        top = np.argpartition(-scores, likely)[:likely]
        found = _ordered(keys[top], ordinals[top], scores[top], depth)
        # No other row can beat or tie with the last one.
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
