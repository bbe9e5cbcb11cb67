"""What the graph stores: mentions of concepts in memories, and triples, which are statements on two concepts.

One name for the ways a concept is written: `Li Hua` and `LiHua`, `U.S.` and `US`, `get_user` and `getUser`.

How long one memory may be read. What stands behind the place where its time ends is not read.
"""

from __future__ import annotations

import math
import re
import time
from typing import Literal

from trivet.analyse import fold
from trivet.common.bounded_cache import MIB, cached
from trivet.types import ConceptKind, Value

# A change to what is extracted needs a new version: stores notice it and rebuild their graph.
EXTRACTION_VERSION = 1
# A concept that a memory is about leads to it more strongly than one it merely mentions. `maybe` is a capital at the
# start of a sentence: it counts only if the word stands capitalised within sentences elsewhere.
Role = Literal["about", "in", "maybe"]
# What read a memory for the graph: the rules, or a language model that writes triples.
Reader = Literal["rules", "triples"]


class Mention(Value, frozen=True, kw_only=True):
    """A concept found in a memory: its canonical name, how it was written there, its kind and role."""

    name: str
    label: str
    kind: ConceptKind
    role: Role


ROLES: tuple[Role, ...] = ("maybe", "in", "about")  # the store keeps a role as its place here


class Triple(Value, frozen=True, kw_only=True):
    """A statement found in a memory, and the time for which it holds.

    `single`: the subject has one such object at a time (where a person lives), so a later statement ends this one.
    """

    subject: str
    relation: str
    object: str
    single: bool = False
    valid_from: str | None = None
    valid_to: str | None = None
    # Canonical names of known concepts that the ends are other names of; None: each is its own.
    subject_means: str | None = None
    object_means: str | None = None

    @property
    def ends(self) -> tuple[tuple[str, str | None], tuple[str, str | None]]:
        """Subject and object, each as written and with what it means."""
        return (self.subject, self.subject_means), (self.object, self.object_means)


LONGEST_NAME = 80
SHORTEST_SINGULAR = 3
# For the names of some 10,000 concepts, each by the ways it is written.
NAMES_BYTES = 4 * MIB

_possessive = re.compile(r"'s?(?=\s|$)")
# Marks between digits are kept (3.5 is not 35), and C, C++ and C# stay three names.
_kept = re.compile(r"(?<=\d)[.,:\-/](?=\d)|[+#]")
_dropped = re.compile(r"[\W_]+")
_between_words = re.compile(r"\W+")
_NOT_PLURAL = ("ss", "us", "is", "os", "as", "ws")
_PLURALS = (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("shes", "sh"), ("ches", "ch"), ("s", ""))
_IRREGULAR = {
    "movies": "movie", "cookies": "cookie", "caches": "cache", "aliases": "alias", "statuses": "status", "buses": "bus",
    "apis": "api",
}  # fmt: skip
# Words that end in s and are no plurals, also where they are written in lower case.
_ENDS_IN_S = frozenset(
    "postgres kubernetes jenkins rails nats https sales express series species".split()
)
_SPELLED = {"+": "plus", "#": "sharp"}


def form(text: str) -> str:
    """The writing, folded: separate words, without possessive, punctuation and a leading article."""
    if (
        text.isascii() and text.replace(" ", "").isalnum()
    ):  # as most: it has nothing that the patterns look for
        return " ".join(text.lower().split()).removeprefix("the ")
    return _form(text)


@cached(NAMES_BYTES)
def _form(text: str) -> str:
    return _between_words.sub(" ", _plain(text)).strip()


def canonical(text: str) -> str:
    """The name that all its forms share: letters and digits only. Empty if that is too long for a name."""
    if text.isascii() and text.isalnum():
        return text.lower() if len(text) <= LONGEST_NAME else ""
    return _canonical(text)


@cached(NAMES_BYTES)
def _canonical(text: str) -> str:
    name = _dropped.sub("", _plain(text))
    return name if len(name) <= LONGEST_NAME else ""


def singular(text: str) -> str:
    """A plural as its singular: `APIs` as `API`, so that `google-sheets` and `Google Sheet` are one.

    A name of one word keeps its end: Adams is not Adam.
    """
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
    """Read from its end: a pattern that ends with `$` would try every place of a long word."""
    start = len(text)
    while start and text[start - 1].isalpha():
        start -= 1
    return text[:start], text[start:]


def _plain(text: str) -> str:
    folded = _possessive.sub("", fold(text)).removeprefix("the ")
    return _kept.sub(lambda match: _SPELLED.get(match.group(), "dot"), folded)


class TimeBudget:
    """Time of the processor in the reader's own thread: a busy machine cuts nothing short."""

    def __init__(self, seconds: float = math.inf) -> None:
        self._end = time.thread_time() + seconds
        self._safe_until = time.perf_counter() + seconds
        self.is_spent = False

    def has_time_left(self) -> bool:
        """Asked between two pieces of a text; once it is over it stays so.

        A thread works no longer than time goes by, and to ask for that is cheaper.
        """
        if not self.is_spent and time.perf_counter() >= self._safe_until:
            self.is_spent = time.thread_time() >= self._end
        return not self.is_spent
