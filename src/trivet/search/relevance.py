"""What happens to a fused score afterwards: the exact-match bonus and the importance prior.

The probability that a candidate is relevant, by a small linear model; its file says how it came to be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from functools import cache
from importlib.resources import files

import msgspec

from trivet.analyse import (
    NOT_ENGLISH,
    IndexedIdentifier,
    IndexedPhrase,
    PhraseSearch,
    Question,
    fold,
)
from trivet.errors import TrivetError
from trivet.search.legs.dense import SILENT
from trivet.types import Memory, Strength

# A query of one common word is no evidence of an exact match.
MIN_EXACT_QUERY_LENGTH = 8
# To look into a shorter text takes less than to read its terms.
LONG_TEXT_CHARACTERS = 2_000


class Exactness:
    """How literally memories hold one query, 0 to 1: a quoted phrase, the whole query, or its identifiers."""

    def __init__(self, question: Question, index_covers_text: bool) -> None:
        """`index_covers_text`: the terms that `of` gets are of all parts of a memory."""
        wholes = question.phrases
        self._has_whole_query = len(question.folded) >= MIN_EXACT_QUERY_LENGTH
        if self._has_whole_query:
            wholes = (*wholes, question.folded)
        known = frozenset(question.every_term)
        indexed = [IndexedPhrase(whole) for whole in wholes]
        self._question, self._index_covers_text = question, index_covers_text
        self._identifiers = [IndexedIdentifier(word, known) for word in question.identifiers]
        self._wholes = [(one, one.terms & known) for one in indexed]

    def is_possible(self, held: Set[str]) -> bool:
        """Whether a memory that has these of the query's terms may be more than 0; of most, they tell that it is not.

        A title that is the whole query holds it as a phrase, unless the query is too short to be looked for as one.
        """
        if not self._index_decides(held) or not self._has_whole_query:
            return True
        return any(within <= held for _, within in self._wholes) or bool(
            self._possible_identifiers(held)
        )

    def needs_terms(self, memory: Memory, held: Set[str]) -> bool:
        """Whether a memory that has these of the query's terms may hold a phrase, and `of` looks at all of its own."""
        is_long = len(memory.content) > LONG_TEXT_CHARACTERS
        return (
            is_long
            and self._index_decides(held)
            and any(within <= held for _, within in self._wholes)
        )

    def of(self, memory: Memory, held: Set[str], terms: Callable[[], str]) -> float:
        """`held` are those of the query's terms that the memory has, and `terms` all of its own, between spaces.

        Most memories lack some or have them elsewhere, and their texts are not read.
        """
        question = self._question
        if memory.title and fold(memory.title) == question.folded:
            return 1.0
        wholes, identifiers = (
            self._possible_wholes(memory, held, terms),
            self._possible_identifiers(held),
        )
        if not wholes and not identifiers:
            return 0.0
        text = PhraseSearch(f"{memory.title}\n{memory.content}" if memory.title else memory.content)
        if any(map(text.holds, wholes)):
            return 1.0
        return sum(map(text.holds, identifiers)) / max(1, len(question.identifiers))

    def _possible_identifiers(self, held: Set[str]) -> list[str]:
        is_told = self._index_decides(held)
        return [one.folded for one in self._identifiers if not is_told or one.is_possible(held)]

    def _possible_wholes(
        self, memory: Memory, held: Set[str], terms: Callable[[], str]
    ) -> list[str]:
        if not self._index_decides(held):
            return [one.folded for one, _ in self._wholes]
        found = [one for one, within in self._wholes if within <= held]
        if found and len(memory.content) > LONG_TEXT_CHARACTERS:
            found = [one for one in found if one.may_occur_among(terms())]
        return [one.folded for one in found]

    def _index_decides(self, held: Set[str]) -> bool:
        return self._index_covers_text and NOT_ENGLISH not in held


def importance_prior(importance: float, weight: float) -> float:
    """A factor between 1 - weight and 1. It breaks near-ties; it never lifts what does not fit."""
    return (1 - weight) + weight * importance


DIGITS = 4
# The feature that a reranker gives to what it has read.
READ = "read"


class Feature(msgspec.Struct, frozen=True):
    """Its weight, and the range it was trained in: beyond it nothing is known, so nothing more is claimed."""

    weight: float
    least: float = -math.inf
    most: float = math.inf


class Linear(msgspec.Struct, frozen=True):
    bias: float
    features: Mapping[str, Feature]

    def score(self, values: Mapping[str, float]) -> float:
        known = self.features.items()
        return self.bias + math.fsum(
            [one.weight * min(max(values[name], one.least), one.most) for name, one in known]
        )


class Calibrated(msgspec.Struct, frozen=True):
    """`unread` does without a reranker; `read` has a model for each bundled one, by its name."""

    unread: Linear
    read: Mapping[str, Linear]

    def of(self, reader: str | None) -> Linear:
        return self.read.get(_name(reader), self.unread)


class RelevanceModel(msgspec.Struct, frozen=True):
    """A cosine of one embedder means nothing for another, so there is a model for each that is known by name.

    `other` does without cosines and serves the rest; `words` is for answers to which no vectors contributed.
    From `threshold` on a hit is a possible answer, and is shown unasked; docs/relevance.md has the curve it was chosen
    by. From `strong` on it is said to be one.
    """

    embedders: Mapping[str, Calibrated]
    other: Calibrated
    words: Calibrated
    threshold: float
    strong: float
    manifest: Mapping[str, object]

    def of(self, embedder: str | None, with_vectors: bool, reader: str | None) -> Linear:
        known = self.embedders.get(_name(embedder), self.other) if with_vectors else self.words
        return known.of(reader)


def _name(identity: str | None) -> str:
    """Of an identity, which is a name, a slash and a fingerprint."""
    return (identity or "").partition("/")[0]


def probability(log_odds: float) -> float:
    """Without overflow at either end."""
    if log_odds >= 0:
        return 1.0 / (1.0 + math.exp(-log_odds))
    power = math.exp(log_odds)
    return power / (1.0 + power)


@cache
def relevance_model() -> RelevanceModel:
    """The model that comes with Trivet."""
    try:
        return msgspec.json.decode(
            (files("trivet.search") / "relevance.json").read_bytes(), type=RelevanceModel
        )
    except (OSError, msgspec.MsgspecError) as error:
        raise TrivetError(
            f"relevance.json cannot be used ({error}): is the installation whole?"
        ) from None


def relevance(
    features: Mapping[str, float],
    embedder: str | None,
    read: float | None = None,
    reader: str | None = None,
    model: RelevanceModel | None = None,
) -> float:
    """`read` is what the reranker `reader` thinks of the candidate, if it read it."""
    linear = (model or relevance_model()).of(
        embedder, not features[SILENT], reader if read is not None else None
    )
    values = {**features, READ: read} if read is not None else features
    return round(probability(linear.score(values)), DIGITS)


def strength(relevance: float) -> Strength:
    """The probability in a word, for readers who do not know what 23 % is worth here."""
    model = relevance_model()
    if relevance >= model.strong:
        return "strong"
    return "possible" if relevance >= model.threshold else "weak"
