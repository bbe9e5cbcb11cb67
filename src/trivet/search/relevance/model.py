"""The probability that a candidate is relevant, by a small linear model; its file says how it came to be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec

from trivet.errors import TrivetError
from trivet.search.legs.dense import SILENT
from trivet.types import Strength

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
        return self.bias + math.fsum([one.weight * min(max(values[name], one.least), one.most) for name, one in known])


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
            (files("trivet.search.relevance") / "relevance.json").read_bytes(), type=RelevanceModel
        )
    except (OSError, msgspec.MsgspecError) as error:
        raise TrivetError(f"relevance.json cannot be used ({error}): is the installation whole?") from None


def relevance(
    features: Mapping[str, float],
    embedder: str | None,
    read: float | None = None,
    reader: str | None = None,
    model: RelevanceModel | None = None,
) -> float:
    """`read` is what the reranker `reader` thinks of the candidate, if it read it."""
    linear = (model or relevance_model()).of(embedder, not features[SILENT], reader if read is not None else None)
    values = {**features, READ: read} if read is not None else features
    return round(probability(linear.score(values)), DIGITS)


def strength(relevance: float) -> Strength:
    """The probability in a word, for readers who do not know what 23 % is worth here."""
    model = relevance_model()
    if relevance >= model.strong:
        return "strong"
    return "possible" if relevance >= model.threshold else "weak"
