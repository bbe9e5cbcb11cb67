"""Readers of claude-mem (observations, summaries, directives) and claude-memory-mcp."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trivet.errors import InvalidInput
from trivet.sources.other_memories.foreign import (
    ForeignMemory,
    ForeignSystem,
    has_table,
    number,
    rows,
    texts,
)

_CATEGORIES = {
    "bugfix": "problems",
    "decision": "decisions",
    "discovery": "facts",
    "feature": "projects",
}
_SUMMARY = ("request", "investigated", "learned", "completed", "next_steps", "notes")


def read_claude_mem(path: Path) -> Iterator[ForeignMemory]:
    if not has_table(path, "observations"):
        raise InvalidInput(f"{path} has no table of observations. Use ~/.claude-mem/claude-mem.db.")
    for row in rows(path, "observations", ("id",), needed=("id", "type", "created_at")):
        yield from _observation(row)
    for row in rows(path, "session_summaries", ("id",)):
        yield from _summary(row)
    for row in rows(path, "directives", ("id",)):
        if row.get("status") == "active" and str(row.get("content") or "").strip():
            yield ForeignMemory(
                kind="directive",
                key=_key("directive", row),
                content=str(row["content"]),
                category="preferences",
                importance=0.8,
                tags=_project(row),
                created_at=str(row["created_at"]),
            )


def _observation(row: dict[str, Any]) -> Iterator[ForeignMemory]:
    facts = [f"- {fact}" for fact in texts(row.get("facts"))]
    narrative = str(row.get("narrative") or row.get("text") or "").strip()
    lines = [text for text in (str(row.get("subtitle") or ""), narrative, "\n".join(facts)) if text]
    content = "\n\n".join(lines) or str(row.get("title") or "")
    if content.strip():
        yield ForeignMemory(
            kind="observation",
            key=_key("observation", row),
            content=content,
            title=str(row.get("title") or ""),
            category=_CATEGORIES.get(str(row["type"]), "events"),
            tags=(str(row["type"]), *texts(row.get("concepts")), *_project(row)),
            created_at=str(row["created_at"]),
        )


def _summary(row: dict[str, Any]) -> Iterator[ForeignMemory]:
    lines = [
        f"{name.replace('_', ' ').capitalize()}: {row[name]}" for name in _SUMMARY if row.get(name)
    ]
    if lines:
        yield ForeignMemory(
            kind="summary",
            key=_key("summary", row),
            content="\n\n".join(lines),
            title=str(row.get("request") or ""),
            category="events",
            tags=("summary", *_project(row)),
            created_at=str(row["created_at"]),
        )


def _key(kind: str, row: dict[str, Any]) -> str:
    # With the time, as ids restart in a new file.
    return f"{kind} {row['id']} {row.get('created_at_epoch')}"


def _project(row: dict[str, Any]) -> tuple[str, ...]:
    return (str(row["project"]),) if row.get("project") else ()


CLAUDE_MEM = ForeignSystem(
    "claude-mem",
    "claude-mem.db (SQLite)",
    read_claude_mem,
    (
        ("observation: title", "title"),
        ("observation: subtitle, narrative, facts", "content"),
        (
            "observation: type",
            "tag, and category (bugfix: problems, decision: decisions, feature: projects, ...)",
        ),
        ("concepts, project", "tags"),
        ("session summary", "a memory of the category events"),
        ("active directive", "a memory of the category preferences"),
        ("prompts, queues", "left out"),
    ),
)


def read_claude_memory_mcp(path: Path) -> Iterator[ForeignMemory]:
    if not has_table(path, "memories"):
        raise InvalidInput(
            f"{path} has no table of memories. Use ~/.claude/claude-memory/memory/memory.db."
        )
    for row in rows(path, "memories", ("id",), needed=("id", "content", "created_at")):
        if row.get("deleted_at") or not str(row["content"]).strip():
            continue
        yield ForeignMemory(
            kind="memory",
            key=f"{row['id']} {row['created_at']}",  # ids restart in a new file
            content=str(row["content"]),
            category=str(row.get("category") or "facts"),
            tags=texts(row.get("tags")),
            keywords=tuple(str(row.get("expanded_keywords") or "").replace(",", " ").split()),
            importance=number(row.get("importance"), 0.5),
            created_at=str(row["created_at"]),
            updated_at=str(row.get("updated_at") or row["created_at"]),
            sensitive=bool(row.get("is_sensitive")),
        )


CLAUDE_MEMORY_MCP = ForeignSystem(
    "claude-memory-mcp",
    "memory.db (SQLite)",
    read_claude_memory_mcp,
    (
        ("content, category, importance", "the same"),
        ("tags, expanded_keywords", "tags and keywords, split at commas and spaces"),
        ("is_sensitive", "sensitive"),
        ("created_at, updated_at", "the same"),
    ),
)
