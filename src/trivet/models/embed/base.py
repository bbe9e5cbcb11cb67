"""The embedder interface, checks of every vector, and the cosines of unrelated texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trivet.errors import EmbedderError

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """A model that turns text into unit vectors; thread-safe."""

    @property
    def identity(self) -> str:
        """The key of stored vectors; equal identities give interchangeable vectors."""

    @property
    def dimension(self) -> int:
        """The length of a vector; may call the model."""

    @property
    def window(self) -> int:
        """The maximum number of tokens in a passage."""

    @property
    def local(self) -> bool:
        """Whether the model runs in this process, so that no text leaves it."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors of shape (len(texts), dimension), in order."""

    def embed_query(self, text: str) -> Vectors:
        """Return a unit vector of shape (dimension,)."""

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors equal to those of single queries."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return each text's tokens, estimated for hosted models."""


def checked(vectors: ArrayLike, count: int, dimension: int | None, source: str) -> Vectors:
    """Return the vectors at unit length, or raise an EmbedderError that names `source`."""
    matrix = _matrix(vectors, source)
    if matrix.shape[0] != count:
        raise EmbedderError(f"{source} returned {matrix.shape[0]} vectors for {count} texts")
    if dimension is not None and count and matrix.shape[1] != dimension:
        raise EmbedderError(
            f"{source} returned vectors of dimension {matrix.shape[1]}, expected {dimension}: the "
            "model behind this name may have changed. Embed again under a new name, or correct the "
            "dimensions setting"
        )
    return _unit_length(matrix, source)


def clean(text: str) -> str:
    """Replace lone surrogates, which tokenizers and JSON endpoints reject."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _matrix(vectors: ArrayLike, source: str) -> Vectors:
    try:
        with np.errstate(over="ignore"):  # overflow becomes infinity, which is rejected below
            matrix = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError):
        raise EmbedderError(
            f"{source} returned vectors of unequal length, or values that are not numbers"
        ) from None
    if matrix.size == 0 and matrix.shape[0] == 0:
        return matrix.reshape(0, matrix.shape[1] if matrix.ndim == 2 else 0)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise EmbedderError(
            f"{source} returned an array of shape {matrix.shape}, expected (texts, dimension)"
        )
    return matrix


def _unit_length(matrix: Vectors, source: str) -> Vectors:
    if not np.isfinite(matrix).all():
        raise EmbedderError(f"{source} returned a vector with NaN or infinite numbers")
    # Squares may leave the range of single precision.
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1, keepdims=True)
    if not (lengths > 0).all():
        raise EmbedderError(f"{source} returned a zero vector, which is similar to nothing")
    unit: Vectors = (matrix / lengths).astype(np.float32)
    return unit


@dataclass(frozen=True, slots=True)
class SimilarityBaseline:
    mean: float
    deviation: float

    def nearness(self, cosine: float) -> float:
        """Return 0 for texts as similar as unrelated ones, 1 for equal texts."""
        return (cosine - self.mean) / (1 - self.mean)

    def cosine(self, nearness: float) -> float:
        return self.mean + nearness * (1 - self.mean)


# Between -1 and the mean for the models that the fusion weights were first tuned on.
DEVIATIONS = 13.0
UNMEASURED_BASELINE = SimilarityBaseline(mean=0.0, deviation=1 / DEVIATIONS)


def similarity_baseline_of(embedder: object) -> SimilarityBaseline:
    known: SimilarityBaseline | None = getattr(embedder, "background", None)
    return known or UNMEASURED_BASELINE
