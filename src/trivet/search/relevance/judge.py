"""The probability that a candidate is relevant, from everything that is known of it."""

from __future__ import annotations

from collections.abc import Mapping

from trivet.search.fuse.features import LEG_FEATURES
from trivet.search.relevance.model import RelevanceModel, probability, relevance_model
from trivet.search.relevance.wording import WORDING_FEATURES

FEATURES: tuple[str, ...] = (*LEG_FEATURES, *WORDING_FEATURES)
DIGITS = 4
# No training set asks in keywords. Of the candidates that held every word of a question, 54 % were relevant, and no
# question of another corpus found one; so what holds the query's words or identifiers is never called less likely.
HELD_LITERALLY = 0.5
ALMOST_ALL = 1 - 1e-9  # a sum of shares


def relevance(features: Mapping[str, float], embedder: str | None, model: RelevanceModel | None = None) -> float:
    """What a reranker thinks is not asked: with it, the probabilities were no better calibrated and refused no more."""
    calibrated = (model or relevance_model()).of(embedder, with_vectors=not features["dense_silent"])
    least = HELD_LITERALLY if max(features["coverage"], features["exact"]) > ALMOST_ALL else 0.0
    return round(max(least, probability(calibrated.score(features))), DIGITS)
