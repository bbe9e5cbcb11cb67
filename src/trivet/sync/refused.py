"""What a server refused to take from a laptop: kept with its words until the user lets go of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trivet.contract import SyncDrop, SyncRefused
from trivet.errors import NotFound
from trivet.memory.engine import Engine
from trivet.secrets import MASK, masked
from trivet.settings.address import is_file
from trivet.store.relational.database import Row
from trivet.sync.conflicts import name_of
from trivet.sync.messages import Op
from trivet.sync.replica import WRITTEN_WHILE_SENSITIVE
from trivet.types import LOCAL, Memory, RefusedOperation

# Those of a memory's fields that hold words of its own.
_WORDS = ("content", "title", "expanded_keywords", "source")


def refused(engine: Engine, request: SyncRefused) -> tuple[RefusedOperation, ...]:
    """Also of a store that has left its server. Words that are or were sensitive are masked."""
    if not is_owner(engine):
        return ()
    connection = engine.store.feed.database.read()
    rows = connection.execute(connection.sql("replica")["parked"]).fetchall()
    memories = engine.store.memories.get_many(list({row["id"] for row in rows}))
    return tuple(_told(row, memories.get(row["id"]), request.reveal) for row in rows)


def _told(row: Row, memory: Memory | None, reveal: bool) -> RefusedOperation:
    op = msgspec.json.decode(row["body"], type=Op)
    said: Mapping[str, Any] = op.fields or {one.query or "it was": one.verdict for one in op.feedback}
    sensitive = said.get("sensitive") or row["reason"] == WRITTEN_WHILE_SENSITIVE or (memory and memory.sensitive)
    hides = bool(sensitive) and not reveal
    if hides:
        said = {name: MASK if name in _WORDS and value else value for name, value in said.items()}
    return RefusedOperation(
        op=row["op"],
        kind=row["kind"],
        id=row["id"],
        name=name_of(masked(memory, reveal, LOCAL)) if memory else None,
        at=row["at"],
        reason=row["reason"],
        said=said,
        masked=hides,
    )


def drop_refused(engine: Engine, request: SyncDrop) -> None:
    """The user has seen it and lets go of it."""
    with engine.store.feed.transaction() as connection:
        values = {"op": request.op}
        if not is_owner(engine) or not connection.execute(connection.sql("replica")["unpark"], values).rowcount:
            raise NotFound(f"No operation {request.op} was refused. `trivet sync refused` lists those that were.")


def is_owner(engine: Engine) -> bool:
    """Of a store that can follow a server, which is a file: other users of it follow nobody."""
    return is_file(engine.settings.path) and engine.viewer in (None, LOCAL)
