"""Exact-match score, importance prior, and the linear relevance model in `relevance.json`."""

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

# One common word is no evidence of an exact match.
MIN_EXACT_QUERY_LENGTH = 8
# Below this length, searching the text is faster than reading its terms.
LONG_TEXT_CHARACTERS = 2_000


class Exactness:
    """A score of how literally memories contain one query, 0 to 1.

    A quoted phrase or the whole query scores 1; else the share of its identifiers counts.
    """

    def __init__(self, question: Question, index_covers_text: bool) -> None:
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
        """Return False if a memory with these query terms certainly scores 0."""
        if not self._index_decides(held) or not self._has_whole_query:
            return True
        return any(within <= held for _, within in self._wholes) or bool(
            self._possible_identifiers(held)
        )

    def needs_terms(self, memory: Memory, held: Set[str]) -> bool:
        is_long = len(memory.content) > LONG_TEXT_CHARACTERS
        return (
            is_long
            and self._index_decides(held)
            and any(within <= held for _, within in self._wholes)
        )

    def of(self, memory: Memory, held: Set[str], terms: Callable[[], str]) -> float:
        """Return the exactness, mostly without reading text.

        `held` are the query's terms in the memory; `terms` returns all.
        """
        question = self._question
        if memory.title and fold(memory.title) == question.folded:
            return 1.0
        wholes, identifiers = (
            self._possible_phrases(memory, held, terms),
            self._possible_identifiers(held),
        )
        if not wholes and not identifiers:
            return 0.0
        text = PhraseSearch(f"{memory.title}\n{memory.content}" if memory.title else memory.content)
        if any(map(text.holds, wholes)):
            return 1.0
        return sum(map(text.holds, identifiers)) / max(1, len(question.identifiers))

    def _possible_identifiers(self, held: Set[str]) -> list[str]:
        is_indexed = self._index_decides(held)
        return [one.folded for one in self._identifiers if not is_indexed or one.is_possible(held)]

    def _possible_phrases(
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
    """Return a factor from 1 - weight to 1, which decides near-ties only."""
    return (1 - weight) + weight * importance


DIGITS = 4
# Feature with the reranker's score.
READ = "read"


class Feature(msgspec.Struct, frozen=True):
    """A weight, and the training range to which values are clamped."""

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
    unread: Linear
    read: Mapping[str, Linear]

    def of(self, reader: str | None) -> Linear:
        return self.read.get(_name(reader), self.unread)


class RelevanceModel(msgspec.Struct, frozen=True):
    """Linear models by embedder, since cosines of two embedders are not comparable.

    `other` serves unknown embedders, `words` answers without vectors.
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
    return (identity or "").partition("/")[0]


def probability(log_odds: float) -> float:
    if log_odds >= 0:
        return 1.0 / (1.0 + math.exp(-log_odds))
    power = math.exp(log_odds)
    return power / (1.0 + power)


@cache
def relevance_model() -> RelevanceModel:
    try:
        return msgspec.json.decode(
            (files("trivet.search") / "relevance.json").read_bytes(), type=RelevanceModel
        )
    except (OSError, msgspec.MsgspecError) as error:
        raise TrivetError(
            f"cannot read relevance.json ({error}): is the installation complete?"
        ) from None


def relevance(
    features: Mapping[str, float],
    embedder: str | None,
    read: float | None = None,
    reader: str | None = None,
    model: RelevanceModel | None = None,
) -> float:
    """Return the probability that a candidate is relevant; `read` is a reranker's score."""
    linear = (model or relevance_model()).of(
        embedder, not features[SILENT], reader if read is not None else None
    )
    values = {**features, READ: read} if read is not None else features
    return round(probability(linear.score(values)), DIGITS)


def strength(relevance: float) -> Strength:
    model = relevance_model()
    if relevance >= model.strong:
        return "strong"
    return "possible" if relevance >= model.threshold else "weak"
