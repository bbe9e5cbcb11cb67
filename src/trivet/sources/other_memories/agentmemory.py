"""agentmemory: the JSON that its export gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trivet.errors import InvalidInput
from trivet.sources.other_memories.file_access import json_of, number, objects, texts
from trivet.sources.other_memories.foreign import ForeignMemory, ForeignSystem

_CATEGORIES = {
    "preference": "preferences",
    "architecture": "decisions",
    "bug": "problems",
    "workflow": "procedures",
    "decision": "decisions",
    "error": "problems",
}


def read(path: Path) -> Iterator[ForeignMemory]:
    value = json_of(path)
    data = value.get("exportData", value) if isinstance(value, dict) else None
    if not isinstance(data, dict) or not isinstance(data.get("memories"), list):
        raise InvalidInput(f"{path} is not an export of agentmemory: it has no list of memories.")
    yield from (found for one in objects(data["memories"]) for found in _memory(one))
    for one in objects(data.get("semanticMemories")):
        yield from _made("semantic memory", one, str(one.get("fact") or ""), "facts")
    for one in objects(data.get("proceduralMemories")):
        steps = [f"{count}. {step}" for count, step in enumerate(texts(one.get("steps")), 1)]
        lines = [str(one.get("triggerCondition") or ""), *steps, str(one.get("expectedOutcome") or "")]
        yield from _made("procedure", one, "\n".join(text for text in lines if text), "procedures")
    for one in objects(data.get("lessons")):
        lines = [str(one.get("content") or ""), str(one.get("context") or "")]
        yield from _made("lesson", one, "\n\n".join(text for text in lines if text), "procedures")
    for one in objects(data.get("summaries")):
        decisions = [f"- {decision}" for decision in texts(one.get("keyDecisions"))]
        lines = [str(one.get("narrative") or ""), "\n".join(decisions)]
        yield from _made("summary", {"id": one.get("sessionId"), **one}, "\n\n".join(lines).strip(), "events")
    buckets = data.get("observations")
    for bucket in (buckets if isinstance(buckets, dict) else {}).values():
        for one in objects(bucket):
            facts = [f"- {fact}" for fact in texts(one.get("facts"))]
            lines = [str(one.get("narrative") or ""), "\n".join(facts)]
            category = _CATEGORIES.get(str(one.get("type")), "events")
            yield from _made("observation", one, "\n\n".join(text for text in lines if text), category)


def _memory(one: dict[str, Any]) -> Iterator[ForeignMemory]:
    links = [("supersedes", f"memory {id}") for id in texts(one.get("supersedes"))]
    links += [("see-also", f"memory {id}") for id in texts(one.get("relatedIds"))]
    category = _CATEGORIES.get(str(one.get("type")), "facts")
    yield from _made("memory", one, str(one.get("content") or ""), category, tuple(links))


def _made(kind: str, one: dict[str, Any], content: str, category: str, links: Any = ()) -> Iterator[ForeignMemory]:
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


SYSTEM = ForeignSystem(
    "agentmemory",
    "its export (JSON)",
    read,
    (
        ("memory: title, content", "title, content"),
        ("memory: type", "tag, and category (bug: problems, workflow: procedures, architecture: decisions, ...)"),
        ("concepts, tags, project", "tags"),
        ("strength or importance, confidence", "importance, confidence (10 is 1)"),
        ("supersedes, relatedIds", "supersedes and see-also links"),
        ("forgetAfter", "valid_to"),
        ("semantic memories, procedures, lessons, summaries, observations", "memories of facts, procedures, events"),
        ("graph, actions, sessions, access logs", "left out: the graph is made anew"),
    ),
)
