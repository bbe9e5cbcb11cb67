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


# How far -1 lies below the cosines of unrelated texts with the models that the fusion's weights were found for first.
DEVIATIONS = 13.0
# Of a model that nobody has measured: cosines are taken as they are, down to -1.
UNMEASURED = Background(mean=0.0, deviation=1 / DEVIATIONS)


def background_of(embedder: object) -> Background:
    """What was measured of an embedder, whoever made it."""
    known: Background | None = getattr(embedder, "background", None)
    return known or UNMEASURED
