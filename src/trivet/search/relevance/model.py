"""The probability that a candidate is relevant, by a small linear model; its file says how it came to be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec

from trivet.errors import TrivetError
from trivet.search.legs.dense import SILENT

DIGITS = 4
# No training set asks in keywords. Of the candidates that held every word of a question, 54 % were relevant, and no
# question of another corpus found one; so what holds the query's words or identifiers is never called less likely.
HELD_LITERALLY = 0.5
ALMOST_ALL = 1 - 1e-9  # a sum of shares


class Feature(msgspec.Struct, frozen=True):
    """Its weight, and the range it was trained in: beyond it nothing is known, so nothing more is claimed."""

    weight: float
    least: float = -math.inf
    most: float = math.inf


class Linear(msgspec.Struct, frozen=True):
    bias: float
    features: Mapping[str, Feature]

    def parts(self, values: Mapping[str, float]) -> dict[str, float]:
        """What each feature adds to the score."""
        return {
            name: feature.weight * min(max(values[name], feature.least), feature.most)
            for name, feature in self.features.items()
        }

    def score(self, values: Mapping[str, float]) -> float:
        return self.bias + math.fsum(self.parts(values).values())


class RelevanceModel(msgspec.Struct, frozen=True):
    """A cosine of one embedder means nothing for another, so there is a model for each that is known by name.

    `other` does without cosines and serves the rest; `words` is for answers to which no vectors contributed.
    `threshold` is the least probability of the best hit at which 19 of 20 answerable queries are still answered.
    """

    embedders: Mapping[str, Linear]
    other: Linear
    words: Linear
    threshold: float
    manifest: Mapping[str, object]

    def of(self, embedder: str | None, with_vectors: bool) -> Linear:
        """`embedder` is an identity: a name, a slash and a fingerprint."""
        if not with_vectors:
            return self.words
        return self.embedders.get((embedder or "").partition("/")[0], self.other)


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


def relevance(features: Mapping[str, float], embedder: str | None, model: RelevanceModel | None = None) -> float:
    """What a reranker thinks is not asked: with it, the probabilities were no better calibrated and refused no more."""
    calibrated = (model or relevance_model()).of(embedder, with_vectors=not features[SILENT])
    least = HELD_LITERALLY if max(features["coverage"], features["exact"]) > ALMOST_ALL else 0.0
    return round(max(least, probability(calibrated.score(features))), DIGITS)
