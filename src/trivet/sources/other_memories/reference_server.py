"""The memory server of the MCP reference servers: entities and relations as lines of JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trivet.errors import InvalidInput
from trivet.sources.files.readers.conversations import json_lines
from trivet.sources.other_memories.file_access import texts
from trivet.sources.other_memories.foreign import ForeignMemory, ForeignSystem


def read(path: Path) -> Iterator[ForeignMemory]:
    try:
        text = path.read_text(encoding="utf-8")
        entries = list(json_lines(text))
        moment = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}.") from None
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}. Nothing was imported.") from None
    entities = {str(entry["name"]): entry for entry in entries if entry.get("type") == "entity" and entry.get("name")}
    relations: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in entries:
        if entry.get("type") == "relation" and str(entry.get("from")) in entities:
            relations[str(entry["from"])].append(entry)
    if text.strip() and not entities:
        raise InvalidInput(f"{path} holds no entities. Name the server's memory.json or memory.jsonl.")
    for name, entity in entities.items():
        yield _entity(name, entity, relations[name], entities, moment)


def _entity(
    name: str, entity: dict[str, Any], relations: list[dict[str, Any]], known: dict[str, Any], moment: str
) -> ForeignMemory:
    kind = str(entity.get("entityType") or "entity")
    lines = [f"{name} ({kind})", *texts(entity.get("observations"))]
    lines += [f"{name} {str(one.get('relationType')).replace('_', ' ')} {one.get('to')}." for one in relations]
    targets = dict.fromkeys(str(one.get("to")) for one in relations)
    return ForeignMemory(
        kind="entity",
        key=name,
        content="\n".join(lines),
        title=name,
        category="people" if kind.lower() == "person" else "facts",
        tags=(kind,),
        created_at=moment,
        links=tuple(("see-also", target) for target in targets if target in known and target != name),
    )


SYSTEM = ForeignSystem(
    "MCP reference memory server",
    "memory.json or memory.jsonl",
    read,
    (
        ("entity name", "title, and the first words of the content"),
        ("entity type", "tag (person: category people)"),
        ("observations", "lines of the content"),
        ("relations", "a line of the content, and a see-also link"),
    ),
)
