"""The bundled ways to rerank, and every number that reranking starts from, in one place.

The depths are those of the training report: six layers over the best 30 gain most; over the best 8 the same model
keeps three quarters of the gain and fits 30 times the cost of a query's embedding, better than fewer layers over more.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MODELS = Path(__file__).resolve().parents[1] / "models"
# Even weights of the fused and the reranker's deviations: the best on average, and no corpus loses by it.
BLEND = 0.5
# For a reranker that the settings name.
TOP = 20
DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Preset:
    """A folder of `models/`, and how many of the best candidates it reads."""

    folder: str
    top: int


PRESETS: dict[str, Preset] = {"fast": Preset("reranker", top=8), "best": Preset("reranker", top=30)}
