"""Makes a link between two memories, for the verb `link` and for a memory that is stored with what it supersedes."""

from __future__ import annotations

from trivet.clock import moment, now
from trivet.errors import Conflict, InvalidInput
from trivet.ids import check_id
from trivet.memory.engine import Engine
from trivet.types import Link, LinkKind


def join(engine: Engine, source: str, kind: LinkKind, target: str) -> Link:
    source, target = check_id(source, "source"), check_id(target, "target")
    if source == target:
        raise InvalidInput(f"A memory cannot be linked to itself ({source}).")
    memories = engine.store.memories.get_many([source, target])
    for id in (source, target):
        if id in memories and memories[id].state == "deleted":
            raise Conflict(f"Memory {id} was forgotten. Restore it before you link it.")
    made = Link(kind=kind, source=source, target=target, created_at=moment(now()))
    engine.store.links.add(made)
    return made
