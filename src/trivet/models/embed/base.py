"""What an embedder is, and the checks that every vector passes before anyone may use it.

How near texts are to a model that have nothing to do with each other: what its cosines are to be taken against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trivet.errors import EmbedderError

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns text into unit vectors. Safe to share between threads."""

    @property
    def identity(self) -> str:
        """What stored vectors are keyed by: two embedders with one identity give interchangeable vectors."""

    @property
    def dimension(self) -> int:
        """Length of a vector. May cost one call to the model the first time."""

    @property
    def window(self) -> int:
        """Most tokens a passage may have; what the model adds by itself is already subtracted."""

    @property
    def local(self) -> bool:
        """True when the model runs inside this process, so that embedding neither waits for nor tells anyone."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text, in the order given: shape (len(texts), dimension)."""

    def embed_query(self, text: str) -> Vectors:
        """The unit vector of a query: shape (dimension,)."""

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Several at once, each as if alone: shape (len(texts), dimension)."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How much of `window` each text takes. Exact for a local model, never too low by much for a hosted one."""


def checked(vectors: ArrayLike, count: int, dimension: int | None, source: str) -> Vectors:
    """The vectors at unit length, or an EmbedderError that names `source`. `dimension` None accepts any width."""
    matrix = _matrix(vectors, source)
    if matrix.shape[0] != count:
        raise EmbedderError(f"{source} answered {matrix.shape[0]} vectors for {count} texts")
    if dimension is not None and count and matrix.shape[1] != dimension:
        raise EmbedderError(
            f"{source} answered vectors of dimension {matrix.shape[1]}, expected {dimension}: "
            "was the model behind this name changed? Re-embed under a new name or correct the dimensions setting"
        )
    return _unit_length(matrix, source)


def clean(text: str) -> str:
    """The text without lone surrogates, which neither a tokenizer nor a JSON endpoint can take."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _matrix(vectors: ArrayLike, source: str) -> Vectors:
    try:
        with np.errstate(over="ignore"):  # becomes infinite, which is refused below
            matrix = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError):
        raise EmbedderError(
            f"{source} answered vectors of unequal length or of something else than numbers"
        ) from None
    if matrix.size == 0 and matrix.shape[0] == 0:
        return matrix.reshape(0, matrix.shape[1] if matrix.ndim == 2 else 0)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise EmbedderError(
            f"{source} answered an array of shape {matrix.shape}, expected (texts, dimension)"
        )
    return matrix


def _unit_length(matrix: Vectors, source: str) -> Vectors:
    if not np.isfinite(matrix).all():
        raise EmbedderError(f"{source} answered a vector with NaN or infinite numbers")
    # In double precision, since the squares of large or tiny numbers leave the range of single precision.
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1, keepdims=True)
    if not (lengths > 0).all():
        raise EmbedderError(f"{source} answered a zero vector, which is similar to nothing")
    unit: Vectors = (matrix / lengths).astype(np.float32)
    return unit


@dataclass(frozen=True, slots=True)
class SimilarityBaseline:
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
UNMEASURED_BASELINE = SimilarityBaseline(mean=0.0, deviation=1 / DEVIATIONS)


def similarity_baseline_of(embedder: object) -> SimilarityBaseline:
    """What was measured of an embedder, whoever made it."""
    known: SimilarityBaseline | None = getattr(embedder, "background", None)
    return known or UNMEASURED_BASELINE
