"""The model of relevance, read from a small file that says how it came to be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec

from trivet.errors import TrivetError
from trivet.search.fuse.linear import Linear


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
