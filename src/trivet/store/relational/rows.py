"""Between database rows and memories."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from trivet.store.base import Document
from trivet.types import Filter, Memory, Source


def to_memory(row: Iterable[Any]) -> Memory:
    (
        _key, id_, content, title, category, tags, importance, confidence, keywords, scope, uri, start_line, end_line,
        created_at, updated_at, valid_from, valid_to, state, sensitive, revision, _length, owner,
    ) = row  # fmt: skip
    return Memory(
        id=id_,
        content=content,
        title=title,
        category=category,
        tags=strings(tags),
        importance=importance,
        confidence=confidence,
        expanded_keywords=strings(keywords),
        scope=scope,
        source=Source(uri=uri, start_line=start_line, end_line=end_line) if uri is not None else None,
        created_at=created_at,
        updated_at=updated_at,
        valid_from=valid_from,
        valid_to=valid_to,
        state=state,
        sensitive=bool(sensitive),
        revision=revision,
        owner=owner,
    )


def to_row(memory: Memory, document: Document) -> dict[str, Any]:
    source = memory.source
    return {
        "id": memory.id,
        "content": memory.content,
        "title": memory.title,
        "category": memory.category,
        "tags": as_json(memory.tags),
        "importance": memory.importance,
        "confidence": memory.confidence,
        "expanded_keywords": as_json(memory.expanded_keywords),
        "scope": memory.scope,
        "source_uri": source.uri if source else None,
        "source_start_line": source.start_line if source else None,
        "source_end_line": source.end_line if source else None,
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
        "valid_from": memory.valid_from,
        "valid_to": memory.valid_to,
        "state": memory.state,
        "sensitive": memory.sensitive,
        "revision": memory.revision,
        "length": document.length,
        "owner": memory.owner,
    }


def filter_parameters(filter: Filter, moment: str | None = None) -> dict[str, Any]:
    """The parameters of the visibility predicate. Without an `as_of`, `moment` is when a memory must be valid."""
    return {
        "moment": moment if filter.as_of is None else None,
        "scope": filter.scope,
        "categories": as_json(filter.categories) if filter.categories else None,
        "tags": as_json(sorted(set(filter.tags))) if filter.tags else None,
        "states": as_json(filter.states),
        "source": filter.source,
        "created_after": filter.created_after,
        "created_before": filter.created_before,
        "as_of": filter.as_of,
        "viewer": filter.viewer,
    }


_decoder = msgspec.json.Decoder(tuple[str, ...])


def strings(text: str) -> tuple[str, ...]:
    return _decoder.decode(text) if text != "[]" else ()


def as_json(values: Iterable[Any]) -> str:
    return json.dumps(list(values), ensure_ascii=False)
