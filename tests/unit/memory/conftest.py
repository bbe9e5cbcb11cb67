from __future__ import annotations

from support.store_fixtures import open_trivet, trivet
from support.word_embedder import embedder, hybrid

__all__ = ["embedder", "hybrid", "open_trivet", "trivet"]
