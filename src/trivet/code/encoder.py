"""The words of source code as numbers: identifiers whole and in parts, as the rest of Trivet takes words.

A term is kept as the 64 bits of a hash (`trivet.analyse.term_hash`).

The encoder of code: a table of word vectors made for code. A chunk's vector is the weighted sum of its words'.

A chunk takes a tenth of a millisecond, a transformer ten and more, so vectors are there with the words: decision 0035.
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

# Enough for the identifiers of a large repository: each is cut up and hashed once while it is indexed.
HASHED_BYTES = 96 * MIB
# Letters, digits and underscores: what nearly every language makes its names of.
_identifier = re.compile(r"[^\W_](?:\w*[^\W_])?")
# What a name loses when it is compared as spoken: `parse_retry_after` and `parseRetryAfter` are one.
_joiners = re.compile(r"[\W_]+")

_hashes: BoundedCache[str, tuple[int, ...]] = BoundedCache(
    HASHED_BYTES, lambda hashes: 56 + 44 * len(hashes)
)


def words_of(text: str) -> list[str]:
    """The identifiers, words and numbers of a text, as written."""
    return _identifier.findall(text)


def terms_of(text: str) -> list[str]:
    """The terms of a text as texts, in its order; each identifier's own ones once."""
    return [term for word in words_of(text) for term in dict.fromkeys(english_terms(word))]


def hashes_of(word: str) -> tuple[int, ...]:
    """The terms that one identifier or word is indexed by, each once."""
    found = _hashes.get(word)
    if found is None:
        found = tuple(dict.fromkeys(map(hashed, english_terms(word))))
        _hashes.put(word, found)
    return found


def normalized_name(name: str) -> str:
    """A name without its case and joiners."""
    return _joiners.sub("", name).lower()


def all_hashes(words: Iterable[str]) -> dict[int, int]:
    """How often each term stands in a list of words."""
    counts: dict[int, int] = {}
    for word, times in Counter(words).items():
        for term in hashes_of(word):
            counts[term] = counts.get(term, 0) + times
    return counts


FOLDER = WEIGHTS / "code"
# A vector's numbers are kept as whole ones from -127 to 127: a quarter of the memory, cosines within .002.
SCALE = 127.0
BLOCK = 64
# The fields of a posting, as bits: the term stands in a name that the chunk defines, around the chunk, in its doc.
NAME, CONTAINER, DOC = 1, 2, 4
# A word of the path counts as one more occurrence. The table was trained so.
IN_PATH = 1.0

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Encoder:
    """`terms` rise; row n of `table` times `scales[n]` is the vector of term n, and counts `asked[n]` in a question.

    `floor` is the mean cosine of what does not belong together, `near` what nearly all of that stays below.
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
        """One row a chunk. `held` is how many postings each has; `term` (a place in `terms`) and `count` are theirs."""
        rows, known = self._rows(terms)
        words = self.table[rows].astype(np.float32) * (self.scales[rows] * known)[:, np.newaxis]
        weights = occurrence_weights(count)
        sums = np.tile(self._sum(*_path_weights(path)), (len(held), 1))
        ends = np.cumsum([0, *held])
        for start in range(
            0, len(held), BLOCK
        ):  # a few chunks at a time: those of a large file would take much memory
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
    """n occurrences count 1 + ln n; a word that stands only around the chunk counts as one."""
    weights: Vector = (1 + np.log(np.maximum(counts, 1))).astype(np.float32)
    return weights


def packed(vectors: Vector) -> NDArray[np.int8]:
    """Vectors as they are kept: each stretched so that its largest number is 127. Nothing stays nothing."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    whole: NDArray[np.int8] = np.rint(vectors / np.maximum(largest, 1e-9) * SCALE).astype(np.int8)
    return whole


def _path_weights(path: str) -> tuple[NDArray[np.uint64], Vector]:
    terms = all_hashes(words_of(path.rpartition(".")[0] or path))
    return np.array(list(terms), dtype=np.uint64), np.full(len(terms), IN_PATH, np.float32)


@cache
def bundled(folder: Path = FOLDER) -> Encoder:
    """The one that comes with Trivet; opened once a process."""
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
            f"{folder} cannot be used ({error!r}): is the installation whole?"
        ) from error
