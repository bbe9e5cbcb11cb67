"""A linear model over named features: small enough to be read, and every part of a score can be told."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec


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
