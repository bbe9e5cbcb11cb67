"""Words of source code as 64-bit hashes, and an encoder that sums their vectors from a table.

It encodes a chunk in 0.1 ms, a transformer in 10 ms or more (docs/decisions/0035).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trivet.analyse.terms import english_terms, hashed
from trivet.common.bounded_cache import MIB, BoundedCache
from trivet.errors import EmbedderError
from trivet.models import WEIGHTS

# Fits the identifiers of a large repository, so that indexing splits and hashes each once.
HASHED_BYTES = 96 * MIB
# Letters, digits and underscores, which nearly every language allows in names.
_identifier = re.compile(r"[^\W_](?:\w*[^\W_])?")
# Removed before comparing names: `parse_retry_after` equals `parseRetryAfter`.
_joiners = re.compile(r"[\W_]+")

_hashes: BoundedCache[str, tuple[int, ...]] = BoundedCache(
    HASHED_BYTES, lambda hashes: 56 + 44 * len(hashes)
)


def words_of(text: str) -> list[str]:
    return _identifier.findall(text)


def terms_of(text: str) -> list[str]:
    """Return terms as strings in order, each identifier's once."""
    return [term for word in words_of(text) for term in dict.fromkeys(english_terms(word))]


def hashes_of(word: str) -> tuple[int, ...]:
    found = _hashes.get(word)
    if found is None:
        found = tuple(dict.fromkeys(map(hashed, english_terms(word))))
        _hashes.put(word, found)
    return found


def normalized_name(name: str) -> str:
    return _joiners.sub("", name).lower()


def all_hashes(words: Iterable[str]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for word, times in Counter(words).items():
        for term in hashes_of(word):
            counts[term] = counts.get(term, 0) + times
    return counts


FOLDER = WEIGHTS / "code"
# Vectors are stored as integers from -127 to 127: a quarter of the memory, cosines within .002.
SCALE = 127.0
BLOCK = 64
# Bits of a posting's fields: the term is in a defined name, the enclosing one, or documentation.
NAME, CONTAINER, DOC = 1, 2, 4
# A word of the path counts as one more occurrence, as in the table's training.
IN_PATH = 1.0

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Encoder:
    """A table of word vectors.

    Row n of `table` times `scales[n]` is the vector of `terms[n]` (sorted), weighted by `asked[n]`
    in a query. Unrelated pairs have the mean cosine `floor` and rarely reach `near`.
    """

    identity: str
    floor: float
    near: float
    terms: NDArray[np.uint64]
    table: NDArray[np.int8]
    scales: NDArray[np.float32]
    asked: NDArray[np.float32]

    def vectors(
        self,
        path: str,
        terms: NDArray[np.uint64],
        held: Sequence[int],
        term: NDArray[np.uint32],
        count: NDArray[np.uint32],
    ) -> NDArray[np.int8]:
        """Return one row per chunk.

        `held` counts postings per chunk; `term` (positions in `terms`) and `count` describe them.
        """
        rows, known = self._rows(terms)
        words = self.table[rows].astype(np.float32) * (self.scales[rows] * known)[:, np.newaxis]
        weights = occurrence_weights(count)
        sums = np.tile(self._sum(*_path_weights(path)), (len(held), 1))
        ends = np.cumsum([0, *held])
        for start in range(0, len(held), BLOCK):  # in blocks, to bound a large file's memory
            sizes = np.array(held[start : start + BLOCK])
            part = slice(ends[start], ends[start + len(sizes)])
            weighed = words[term[part]] * weights[part, np.newaxis]
            some = np.flatnonzero(sizes)  # a chunk may have no words
            if len(some):
                sums[start + some] += np.add.reduceat(weighed, (np.cumsum(sizes) - sizes)[some])
        return packed(sums)

    def query(self, text: str) -> Vector:
        counts = all_hashes(words_of(text))
        terms = np.array(list(counts), dtype=np.uint64)
        weights = occurrence_weights(np.array(list(counts.values()), np.uint32))
        summed = self._sum(terms, weights * self.asked[self._rows(terms)[0]])
        length = float(np.linalg.norm(summed))
        return summed / length if length else summed

    def _sum(self, terms: NDArray[np.uint64], weights: Vector) -> Vector:
        rows, known = self._rows(terms)
        scaled: Vector = (weights * known * self.scales[rows]) @ self.table[rows].astype(np.float32)
        return scaled

    def _rows(self, terms: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        rows = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
        return rows, self.terms[rows] == terms


def occurrence_weights(counts: NDArray[np.uint32]) -> Vector:
    """Return 1 + ln n; a word only around the chunk counts as one."""
    weights: Vector = (1 + np.log(np.maximum(counts, 1))).astype(np.float32)
    return weights


def packed(vectors: Vector) -> NDArray[np.int8]:
    """Scale each vector to a largest value of 127; zero vectors stay zero."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    whole: NDArray[np.int8] = np.rint(vectors / np.maximum(largest, 1e-9) * SCALE).astype(np.int8)
    return whole


def _path_weights(path: str) -> tuple[NDArray[np.uint64], Vector]:
    terms = all_hashes(words_of(path.rpartition(".")[0] or path))
    return np.array(list(terms), dtype=np.uint64), np.full(len(terms), IN_PATH, np.float32)


@cache
def bundled(folder: Path = FOLDER) -> Encoder:
    try:
        description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        with np.load(folder / "words.npz") as arrays:
            return Encoder(
                identity=f"{description['name']}/{description['sha256']['words.npz'][:12]}",
                floor=description["floor"],
                near=description["near"],
                terms=arrays["terms"],
                table=arrays["table"],
                scales=arrays["scales"].astype(np.float32),
                asked=arrays["asked"].astype(np.float32),
            )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EmbedderError(
            f"Cannot load the code encoder from {folder} ({error!r}). Reinstall Trivet."
        ) from error
