"""Takes over the file of the reference server, once: the one that MEMORY_FILE_PATH names in its configuration."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from trivet.clock import now
from trivet.errors import Conflict, InvalidInput, NotFound
from trivet.serve.mcp.reference.graph import SCOPE, Entity, Relation, entity_rows, relation_row
from trivet.trivet import Trivet

logger = logging.getLogger("trivet.serve")

FILE_VARIABLE = "MEMORY_FILE_PATH"
_NAMESPACE = uuid.UUID("8a2c7f0e-5d0b-5b1c-9a59-0d6f3c7f4c11")


class EntityLine(Entity, tag_field="type", tag="entity"):
    pass


class RelationLine(Relation, frozen=True, tag_field="type", tag="relation"):
    pass


def take_over(memory: Trivet) -> None:
    """Stores what the file holds, if it is there and was not taken before. It is read and never changed.

    A memory notes that it was taken. It is written with the graph or not at all, and is found even when it was
    forgotten, so that a graph which its user emptied stays empty.
    """
    file = Path(os.environ.get(FILE_VARIABLE, "")).expanduser().absolute()
    if FILE_VARIABLE not in os.environ or not file.is_file():
        return
    note = str(uuid.uuid5(_NAMESPACE, str(file)))
    if _is_there(memory, note):
        return
    content = f"The knowledge graph of {file} was taken over at {now()}."
    taken = {"id": note, "scope": SCOPE, "content": content, "title": "Taken over"}
    rows = [{**row, "start_line": line} for line, row in enumerate(_rows(file), 1)]
    try:
        memory.remember_many([taken, *rows])
    except Conflict:  # another program has just done the same
        return
    logger.warning("%s was taken over: %d memories.", file, len(rows))


def _is_there(memory: Trivet, id: str) -> bool:
    try:
        memory.get(id)
    except NotFound:
        return False
    return True


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    known: set[str] = set()
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = msgspec.json.decode(line, type=EntityLine | RelationLine)
        except msgspec.DecodeError as error:
            raise InvalidInput(
                f"{file}, line {number}: it is no entity and no relation ({error}). Nothing was taken over. Mend the "
                f"line, or take {FILE_VARIABLE} out of the agent's configuration."
            ) from None
        if isinstance(found, RelationLine):
            yield relation_row(found)
        elif found.name not in known:
            known.add(found.name)
            yield from entity_rows(found)
