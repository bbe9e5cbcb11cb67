"""Mentions and statements in the graph, and one canonical name per concept."""

from __future__ import annotations

import math
import re
import time
from typing import Literal

from trivet.analyse import fold
from trivet.common.bounded_cache import MIB, cached
from trivet.types import ConceptKind, Value

# Increment when extraction changes: stores notice it and rebuild their graph.
EXTRACTION_VERSION = 1
# `about` leads to a concept more strongly than `in`. `maybe`, a capital at a sentence start, counts
# only if the word is capitalized elsewhere.
Role = Literal["about", "in", "maybe"]
# The rules, or a language model that writes triples.
Reader = Literal["rules", "triples"]


class Mention(Value, frozen=True, kw_only=True):
    name: str
    label: str
    kind: ConceptKind
    role: Role


ROLES: tuple[Role, ...] = ("maybe", "in", "about")  # stored as the index in this tuple


class Triple(Value, frozen=True, kw_only=True):
    """A statement found in a memory, and the time for which it holds.

    `single`: the subject has one such object at a time (where a person lives), so a later statement
    ends this one.
    """

    subject: str
    relation: str
    object: str
    single: bool = False
    valid_from: str | None = None
    valid_to: str | None = None
    # Canonical names of the concepts that the ends are aliases of.
    subject_means: str | None = None
    object_means: str | None = None

    @property
    def ends(self) -> tuple[tuple[str, str | None], tuple[str, str | None]]:
        return (self.subject, self.subject_means), (self.object, self.object_means)


LONGEST_NAME = 80
SHORTEST_SINGULAR = 3
# Enough for the names of about 10,000 concepts in all spellings.
NAMES_BYTES = 4 * MIB

_possessive = re.compile(r"'s?(?=\s|$)")
# Marks between digits are kept (3.5 is not 35); C, C++ and C# stay distinct.
_kept = re.compile(r"(?<=\d)[.,:\-/](?=\d)|[+#]")
_dropped = re.compile(r"[\W_]+")
_between_words = re.compile(r"\W+")
_NOT_PLURAL = ("ss", "us", "is", "os", "as", "ws")
_PLURALS = (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("shes", "sh"), ("ches", "ch"), ("s", ""))
_IRREGULAR = {
    "movies": "movie", "cookies": "cookie", "caches": "cache", "aliases": "alias",
    "statuses": "status", "buses": "bus", "apis": "api",
}  # fmt: skip
# Words that end in s and are not plurals, even in lower case.
_ENDS_IN_S = frozenset(
    "postgres kubernetes jenkins rails nats https sales express series species".split()
)
_SPELLED = {"+": "plus", "#": "sharp"}


def form(text: str) -> str:
    if (
        text.isascii() and text.replace(" ", "").isalnum()
    ):  # the common case, which needs no patterns
        return " ".join(text.lower().split()).removeprefix("the ")
    return _form(text)


@cached(NAMES_BYTES)
def _form(text: str) -> str:
    return _between_words.sub(" ", _plain(text)).strip()


def canonical(text: str) -> str:
    """Return the name shared by all spellings (`U.S.` and `US`); empty if it is too long."""
    if text.isascii() and text.isalnum():
        return text.lower() if len(text) <= LONGEST_NAME else ""
    return _canonical(text)


@cached(NAMES_BYTES)
def _canonical(text: str) -> str:
    name = _dropped.sub("", _plain(text))
    return name if len(name) <= LONGEST_NAME else ""


def singular(text: str) -> str:
    """Return the singular, unless it is a capitalized word: Adams is not Adam."""
    start, word = _last_word(text)
    if (
        (text == word and word.istitle())
        or word.endswith(_NOT_PLURAL)
        or word.lower() in _ENDS_IN_S
    ):
        return text
    if word.lower() in _IRREGULAR:
        return start + _IRREGULAR[word.lower()]
    for ending, instead in _PLURALS:
        if word.endswith(ending) and len(word) - len(ending) + len(instead) >= SHORTEST_SINGULAR:
            return start + word.removesuffix(ending) + instead
    return text


def _last_word(text: str) -> tuple[str, str]:
    """Split without a pattern ending in `$`, which would try every position of a long word."""
    start = len(text)
    while start and text[start - 1].isalpha():
        start -= 1
    return text[:start], text[start:]


def _plain(text: str) -> str:
    folded = _possessive.sub("", fold(text)).removeprefix("the ")
    return _kept.sub(lambda match: _SPELLED.get(match.group(), "dot"), folded)


class TimeBudget:
    """A limit on the calling thread's CPU time."""

    def __init__(self, seconds: float = math.inf) -> None:
        self._end = time.thread_time() + seconds
        self._safe_until = time.perf_counter() + seconds
        self.is_spent = False

    def has_time_left(self) -> bool:
        """Return whether the budget lasts; elapsed time is cheaper and goes first."""
        if not self.is_spent and time.perf_counter() >= self._safe_until:
            self.is_spent = time.thread_time() >= self._end
        return not self.is_spent
