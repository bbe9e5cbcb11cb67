"""The words of source code as numbers: identifiers whole and in parts, as the rest of Trivet takes words.

A term is kept as the 64 bits of a hash (`trivet.analyse.term_hash`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from trivet.analyse.term_hash import hashed
from trivet.analyse.terms import english_terms
from trivet.bounded_cache import MIB, BoundedCache

# Enough for the identifiers of a large repository: each is cut up and hashed once while it is indexed.
HASHED_BYTES = 96 * MIB
# Letters, digits and underscores: what nearly every language makes its names of.
_identifier = re.compile(r"[^\W_](?:\w*[^\W_])?")
# What a name loses when it is compared as spoken: `parse_retry_after` and `parseRetryAfter` are one.
_joiners = re.compile(r"[\W_]+")

_hashes: BoundedCache[str, tuple[int, ...]] = BoundedCache(HASHED_BYTES, lambda hashes: 56 + 44 * len(hashes))


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


def as_spoken(name: str) -> str:
    """A name without its case and joiners."""
    return _joiners.sub("", name).lower()


def all_hashes(words: Iterable[str]) -> dict[int, int]:
    """How often each term stands in a list of words."""
    counts: dict[int, int] = {}
    for word, times in Counter(words).items():
        for term in hashes_of(word):
            counts[term] = counts.get(term, 0) + times
    return counts
