"""mem0: what `get_all` or its export writes as JSON, or the history that it keeps in SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trivet.errors import InvalidInput
from trivet.sources.other_memories.file_access import has_table, is_sqlite, json_of, objects, rows, texts
from trivet.sources.other_memories.foreign import ForeignMemory, ForeignSystem


def read(path: Path) -> Iterator[ForeignMemory]:
    yield from _history(path) if is_sqlite(path) else _results(path)


def _results(path: Path) -> Iterator[ForeignMemory]:
    value = json_of(path)
    listed = value.get("results", value.get("memories")) if isinstance(value, dict) else value
    found = [one for one in objects(listed) if one.get("id") and (one.get("memory") or one.get("text"))]
    if not found:
        raise InvalidInput(f"{path} holds no memories with an id and a text. Save what mem0's get_all returns.")
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
    """The last text of each memory; deleted ones are left out."""
    if not has_table(path, "history"):
        raise InvalidInput(f"{path} has no table of history. Name ~/.mem0/history.db, or a JSON export.")
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


SYSTEM = ForeignSystem(
    "mem0",
    "a JSON export, or history.db (SQLite)",
    read,
    (
        ("id", "the same id, if it is a UUID"),
        ("memory (JSON), the last new_memory (history)", "content"),
        ("categories, metadata.tags, user_id, agent_id", "tags"),
        ("metadata.category", "category, if you have it"),
        ("expiration_date", "valid_to"),
        ("deleted memories", "left out"),
    ),
)
