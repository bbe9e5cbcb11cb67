from __future__ import annotations

from support.opened import open_trivet, trivet
from support.word_embedder import embedder, hybrid

__all__ = ["embedder", "hybrid", "open_trivet", "trivet"]
