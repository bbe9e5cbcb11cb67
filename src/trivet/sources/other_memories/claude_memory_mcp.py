"""claude-memory-mcp: the table `memories` of its SQLite file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trivet.errors import InvalidInput
from trivet.sources.other_memories.file_access import has_table, number, rows, texts
from trivet.sources.other_memories.foreign import ForeignMemory, ForeignSystem


def read(path: Path) -> Iterator[ForeignMemory]:
    if not has_table(path, "memories"):
        raise InvalidInput(f"{path} has no table of memories. Name ~/.claude/claude-memory/memory/memory.db.")
    for row in rows(path, "memories", ("id",), needed=("id", "content", "created_at")):
        if row.get("deleted_at") or not str(row["content"]).strip():
            continue
        yield ForeignMemory(
            kind="memory",
            key=f"{row['id']} {row['created_at']}",  # numbers begin again in a new file
            content=str(row["content"]),
            category=str(row.get("category") or "facts"),
            tags=texts(row.get("tags")),
            keywords=tuple(str(row.get("expanded_keywords") or "").replace(",", " ").split()),
            importance=number(row.get("importance"), 0.5),
            created_at=str(row["created_at"]),
            updated_at=str(row.get("updated_at") or row["created_at"]),
            sensitive=bool(row.get("is_sensitive")),
        )


SYSTEM = ForeignSystem(
    "claude-memory-mcp",
    "memory.db (SQLite)",
    read,
    (
        ("content, category, importance", "the same"),
        ("tags, expanded_keywords", "tags and keywords, taken apart at commas and blanks"),
        ("is_sensitive", "sensitive"),
        ("created_at, updated_at", "the same"),
    ),
)
