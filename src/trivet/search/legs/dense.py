"""The dense leg: nearest passages by cosine, each memory by its best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trivet.errors import LegFailed
from trivet.search.embedding import Embedding
from trivet.search.recipe import Recipe
from trivet.types import Filter, Ranking

if TYPE_CHECKING:
    from trivet.store import Store

# Cosine of unit vectors.
FLOOR = -1.0


def dense(store: Store, embedding: Embedding, query: str, filter: Filter, recipe: Recipe) -> Ranking:
    serving = embedding.serving()
    if serving is None:
        raise LegFailed("no memory has been embedded yet")
    found = store.vectors.search(serving, embedding.query_vector(serving, query), filter, recipe.depth)
    return Ranking(leg="dense", floor=FLOOR, candidates=tuple(found))
