"""The bundled ways to rerank, and every number that reranking starts from, in one place.

Depths and blends are those that did best on average over seven corpora, none of which lost by them: six layers over the
best 30, and for less time four narrow layers over the best 20, which keep most of the gain.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MODELS = Path(__file__).resolve().parents[1] / "weights"
# For a reranker that the settings name: even weights of the text legs' and its own deviations.
BLEND = 0.5
TOP = 20
DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Preset:
    """A folder of `models/`, how many of the best candidates it reads, and how much its word counts."""

    folder: str
    top: int
    blend: float


PRESETS: dict[str, Preset] = {
    "fast": Preset("reranker-fast", top=20, blend=BLEND),
    "best": Preset("reranker", top=30, blend=BLEND),
}
