"""Stored memories that a statement is close to, by words and by meaning."""

from __future__ import annotations

import msgspec

from trivet.contract import MAX_QUERY_CHARACTERS, Recall
from trivet.memory.engine import Engine
from trivet.memory.likeness import fingerprint
from trivet.memory.recall import follow
from trivet.types import Memory

LOOKED_AT = 8


class Near(msgspec.Struct, frozen=True):
    memory: Memory
    cosine: float | None = None


def near(engine: Engine, text: str) -> tuple[Near, ...]:
    """The likeliest first. Their real words, of sensitive ones too: they are compared here, not shown."""
    query = text.replace('"', " ")[:MAX_QUERY_CHARACTERS]
    cosines: dict[str, float | None] = {}
    if query.strip():
        answer = follow(engine, Recall(query=query, limit=LOOKED_AT, collapse=False, expand=False, rerank="off")).answer
        for hit in answer.hits:
            dense = hit.why.legs.get("dense")
            cosines[hit.id] = dense.score if dense and dense.rank is not None else None
    for id in engine.store.lexical.similar("", fingerprint(text), LOOKED_AT, engine.viewer):
        cosines.setdefault(id, None)
    memories = engine.store.memories.get_many(list(cosines))
    return tuple(
        Near(memories[id], cosine)
        for id, cosine in cosines.items()
        if id in memories and memories[id].state in ("active", "archived")
    )
