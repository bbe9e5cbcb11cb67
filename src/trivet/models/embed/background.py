"""How near texts are to a model that have nothing to do with each other: what its cosines are to be taken against."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Background:
    """The cosines of questions and memories that have nothing to do with each other."""

    mean: float
    deviation: float

    def nearness(self, cosine: float) -> float:
        """0: as near as unrelated texts are on average, 1: the same. What is stated so holds for every model."""
        return (cosine - self.mean) / (1 - self.mean)

    def cosine(self, nearness: float) -> float:
        return self.mean + nearness * (1 - self.mean)
