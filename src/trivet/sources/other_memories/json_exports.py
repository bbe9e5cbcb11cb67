"""Readers of exports: agentmemory, mem0 and the MCP reference memory server.

mem0 is read from JSON or from its SQLite history, the reference server from lines of JSON.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trivet.errors import InvalidInput
from trivet.sources.files.conversations import json_lines
from trivet.sources.other_memories.foreign import (
    ForeignMemory,
    ForeignSystem,
    has_table,
    is_sqlite,
    json_of,
    number,
    objects,
    rows,
    texts,
)

_CATEGORIES = {
    "preference": "preferences",
    "architecture": "decisions",
    "bug": "problems",
    "workflow": "procedures",
    "decision": "decisions",
    "error": "problems",
}


def read_agentmemory(path: Path) -> Iterator[ForeignMemory]:
    value = json_of(path)
    data = value.get("exportData", value) if isinstance(value, dict) else None
    if not isinstance(data, dict) or not isinstance(data.get("memories"), list):
        raise InvalidInput(f"{path} is not an export of agentmemory: it has no list of memories.")
    yield from (found for one in objects(data["memories"]) for found in _memory(one))
    for one in objects(data.get("semanticMemories")):
        yield from _made("semantic memory", one, str(one.get("fact") or ""), "facts")
    for one in objects(data.get("proceduralMemories")):
        steps = [f"{count}. {step}" for count, step in enumerate(texts(one.get("steps")), 1)]
        lines = [
            str(one.get("triggerCondition") or ""),
            *steps,
            str(one.get("expectedOutcome") or ""),
        ]
        yield from _made("procedure", one, "\n".join(text for text in lines if text), "procedures")
    for one in objects(data.get("lessons")):
        lines = [str(one.get("content") or ""), str(one.get("context") or "")]
        yield from _made("lesson", one, "\n\n".join(text for text in lines if text), "procedures")
    for one in objects(data.get("summaries")):
        decisions = [f"- {decision}" for decision in texts(one.get("keyDecisions"))]
        lines = [str(one.get("narrative") or ""), "\n".join(decisions)]
        yield from _made(
            "summary", {"id": one.get("sessionId"), **one}, "\n\n".join(lines).strip(), "events"
        )
    buckets = data.get("observations")
    for bucket in (buckets if isinstance(buckets, dict) else {}).values():
        for one in objects(bucket):
            facts = [f"- {fact}" for fact in texts(one.get("facts"))]
            lines = [str(one.get("narrative") or ""), "\n".join(facts)]
            category = _CATEGORIES.get(str(one.get("type")), "events")
            yield from _made(
                "observation", one, "\n\n".join(text for text in lines if text), category
            )


def _memory(one: dict[str, Any]) -> Iterator[ForeignMemory]:
    links = [("supersedes", f"memory {id}") for id in texts(one.get("supersedes"))]
    links += [("see-also", f"memory {id}") for id in texts(one.get("relatedIds"))]
    category = _CATEGORIES.get(str(one.get("type")), "facts")
    yield from _made("memory", one, str(one.get("content") or ""), category, tuple(links))


def _made(
    kind: str, one: dict[str, Any], content: str, category: str, links: Any = ()
) -> Iterator[ForeignMemory]:
    if not content.strip() or not one.get("id"):
        return
    project = (str(one["project"]),) if one.get("project") else ()
    type = (str(one["type"]),) if one.get("type") else ()
    weight = one.get("strength", one.get("importance"))
    created = one.get("createdAt") or one.get("timestamp")
    yield ForeignMemory(
        kind=kind,
        key=f"{kind} {one['id']}",
        content=content,
        title=str(one.get("title") or one.get("name") or ""),
        category=category,
        tags=(*type, *texts(one.get("concepts")), *texts(one.get("tags")), *project),
        importance=number(weight, 0.5),
        confidence=number(one.get("confidence"), 1.0),
        created_at=str(created) if created else None,
        updated_at=str(one["updatedAt"]) if one.get("updatedAt") else None,
        valid_to=str(one["forgetAfter"]) if one.get("forgetAfter") else None,
        links=links,
    )


AGENTMEMORY = ForeignSystem(
    "agentmemory",
    "its export (JSON)",
    read_agentmemory,
    (
        ("memory: title, content", "title, content"),
        (
            "memory: type",
            "tag, and category (bug: problems, workflow: procedures, architecture: decisions, ...)",
        ),
        ("concepts, tags, project", "tags"),
        ("strength or importance, confidence", "importance, confidence (10 is 1)"),
        ("supersedes, relatedIds", "supersedes and see-also links"),
        ("forgetAfter", "valid_to"),
        (
            "semantic memories, procedures, lessons, summaries, observations",
            "memories of facts, procedures, events",
        ),
        ("graph, actions, sessions, access logs", "left out: the graph is rebuilt"),
    ),
)


def read_mem0(path: Path) -> Iterator[ForeignMemory]:
    yield from _history(path) if is_sqlite(path) else _results(path)


def _results(path: Path) -> Iterator[ForeignMemory]:
    value = json_of(path)
    listed = value.get("results", value.get("memories")) if isinstance(value, dict) else value
    found = [
        one for one in objects(listed) if one.get("id") and (one.get("memory") or one.get("text"))
    ]
    if not found:
        raise InvalidInput(
            f"{path} has no memories with an id and a text. Save the result of mem0's get_all."
        )
    for one in found:
        metadata = one.get("metadata")
        inner: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
        whose = (str(one[name]) for name in ("user_id", "agent_id") if one.get(name))
        yield ForeignMemory(
            kind="memory",
            key=str(one["id"]),
            content=str(one.get("memory") or one["text"]),
            category=str(inner.get("category") or "facts"),
            tags=(*texts(one.get("categories")), *texts(inner.get("tags")), *whose),
            created_at=_time(one.get("created_at")),
            updated_at=_time(one.get("updated_at") or one.get("created_at")),
            valid_to=_time(one.get("expiration_date")),
        )


def _history(path: Path) -> Iterator[ForeignMemory]:
    """Yield the last text of each memory."""
    if not has_table(path, "history"):
        raise InvalidInput(
            f"{path} has no table of history. Use ~/.mem0/history.db, or a JSON export."
        )
    last: dict[str, dict[str, Any]] = {}
    first: dict[str, Any] = {}
    order = ("created_at", "updated_at", "rowid")
    for row in rows(path, "history", order, needed=("memory_id", "new_memory", "event")):
        key = str(row["memory_id"])
        first.setdefault(key, row.get("created_at"))
        last[key] = row
    for key, row in last.items():
        text = str(row["new_memory"] or "").strip()
        if row["event"] == "DELETE" or row.get("is_deleted") or not text:
            continue
        yield ForeignMemory(
            kind="memory",
            key=key,
            content=text,
            tags=tuple(str(row[name]) for name in ("actor_id",) if row.get(name)),
            created_at=_time(first[key]),
            updated_at=_time(row.get("updated_at") or row.get("created_at")),
        )


def _time(value: Any) -> str | None:
    return str(value) if value else None


MEM0 = ForeignSystem(
    "mem0",
    "a JSON export, or history.db (SQLite)",
    read_mem0,
    (
        ("id", "the same id, if it is a UUID"),
        ("memory (JSON), the last new_memory (history)", "content"),
        ("categories, metadata.tags, user_id, agent_id", "tags"),
        ("metadata.category", "category, if you have it"),
        ("expiration_date", "valid_to"),
        ("deleted memories", "left out"),
    ),
)


def read(path: Path) -> Iterator[ForeignMemory]:
    try:
        text = path.read_text(encoding="utf-8")
        entries = list(json_lines(text))
        moment = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}.") from None
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}. Nothing was imported.") from None
    entities = {
        str(entry["name"]): entry
        for entry in entries
        if entry.get("type") == "entity" and entry.get("name")
    }
    relations: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in entries:
        if entry.get("type") == "relation" and str(entry.get("from")) in entities:
            relations[str(entry["from"])].append(entry)
    if text.strip() and not entities:
        raise InvalidInput(f"{path} has no entities. Use the server's memory.json or memory.jsonl.")
    for name, entity in entities.items():
        yield _entity(name, entity, relations[name], entities, moment)


def _entity(
    name: str,
    entity: dict[str, Any],
    relations: list[dict[str, Any]],
    known: dict[str, Any],
    moment: str,
) -> ForeignMemory:
    kind = str(entity.get("entityType") or "entity")
    lines = [f"{name} ({kind})", *texts(entity.get("observations"))]
    lines += [
        f"{name} {str(one.get('relationType')).replace('_', ' ')} {one.get('to')}."
        for one in relations
    ]
    targets = dict.fromkeys(str(one.get("to")) for one in relations)
    return ForeignMemory(
        kind="entity",
        key=name,
        content="\n".join(lines),
        title=name,
        category="people" if kind.lower() == "person" else "facts",
        tags=(kind,),
        created_at=moment,
        links=tuple(
            ("see-also", target) for target in targets if target in known and target != name
        ),
    )


REFERENCE_SERVER = ForeignSystem(
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
