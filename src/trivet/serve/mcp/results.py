"""Conversion of the facade's results to the result types for agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from trivet.serve.mcp.result_types import (
    LISTED_CHARACTERS,
    NOTICE,
    WHOLE_CHARACTERS,
    Changed,
    Counted,
    Explained,
    Found,
    Got,
    Joined,
    Judged,
    Listed,
    OtherSystemHit,
    Recalled,
    Resolved,
    Shape,
    Shown,
    Similar,
    Stored,
    Updatable,
    WhyFound,
)
from trivet.types import (
    Answer,
    ForeignHit,
    Health,
    Hit,
    Link,
    Memory,
    Page,
    Remembered,
    Resolution,
    Source,
    Stats,
    Usage,
    WhyNot,
)

# Enough to choose a tag or scope; the rest occur about once.
MOST_USED = 30
# msgspec.structs.fields takes longer than the rest of the work.
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Memory)}


def stored(remembered: Remembered) -> Stored:
    similar = [
        Similar(id=other.id, similarity=other.similarity, content=text, whole_characters=whole)
        for other in remembered.near_duplicates
        for text, whole in [_start(other.content, LISTED_CHARACTERS)]
    ]
    updates = [
        Updatable(id=old.id, content=text, why=old.why, whole_characters=whole)
        for old in remembered.may_update
        for text, whole in [_start(old.content, LISTED_CHARACTERS)]
    ]
    return Stored(
        id=remembered.id,
        status=remembered.status,
        revision=remembered.revision,
        near_duplicates=tuple(similar),
        may_update=tuple(updates),
        redacted=remembered.redacted,
    )


def recalled(answer: Answer) -> Recalled:
    return Recalled(
        notice=NOTICE,
        hits=tuple(_found(hit) for hit in answer.hits),
        foreign=tuple(_other_system_hit(hit) for hit in answer.foreign),
        truncated=answer.truncated,
        nothing_relevant=answer.nothing_relevant,
        best_relevance=_likely(answer.best_relevance) if answer.nothing_relevant else None,
        health=_health(answer.health),
    )


def got(memory: Memory, links: Sequence[Link]) -> Got:
    joined = tuple(Joined(kind=link.kind, source=link.source, target=link.target) for link in links)
    return Got(notice=NOTICE, links=joined, **_fields(memory))


def listed(page: Page) -> Listed:
    memories = []
    for memory in page.memories:
        content, whole = _start(memory.content, LISTED_CHARACTERS)
        memories.append(Shown(**{**_fields(memory), "content": content, "whole_characters": whole}))
    end = page.offset + len(memories)
    following = end if memories and end < page.total else None
    return Listed(
        notice=NOTICE,
        memories=tuple(memories),
        total=page.total,
        offset=page.offset,
        next_offset=following,
    )


def changed(memory: Memory, undo: str | None = None) -> Changed:
    return Changed(id=memory.id, state=memory.state, revision=memory.revision, undo=undo)


def explained(why_not: WhyNot) -> Explained:
    return Explained(
        notice=NOTICE,
        id=why_not.id,
        returned=why_not.returned,
        rank=why_not.rank,
        verdict=why_not.verdict,
        reasons=why_not.reasons,
    )


def counted(stats: Stats) -> Counted:
    return Counted(
        notice=NOTICE,
        memories=stats.memories,
        categories=stats.categories,
        scopes=_most_used(stats.scopes),
        tags=_most_used(stats.tags),
        links=stats.links,
        sensitive=stats.sensitive,
        not_embedded=stats.not_embedded,
        failing_jobs=stats.failing_jobs,
        concepts=stats.concepts,
        not_in_graph=stats.not_in_graph,
        embedder=stats.embedder,
        notes=stats.notes,
    )


def judged(usage: Usage) -> Judged:
    return Judged(id=usage.id, useful=usage.useful, not_useful=usage.not_useful)


def _found(hit: Hit) -> Found:
    content = hit.content if len(hit.content) <= WHOLE_CHARACTERS else hit.passage
    content, _ = _start(content, WHOLE_CHARACTERS)
    whole = len(hit.content)
    shortened = {
        "score": round(hit.score, 3),
        "relevance": _likely(hit.relevance),
        "strength": hit.strength,
        "content": content,
        "whole_characters": whole if len(content) < whole else None,
        "why": WhyFound(**_same(WhyFound, hit.why)),
        "resolved_by": tuple(_resolved(resolution) for resolution in hit.resolved_by),
    }
    return Found(**{**_same(Found, hit), **shortened})


def _same(shape: type[Shape], value: Any) -> dict[str, Any]:
    """Return shared fields not at their default, since a shape omits fields not given."""
    return {
        name: given
        for name, default in _defaults(shape).items()
        if (given := getattr(value, name, default)) != default
    }


@cache
def _defaults(shape: type[Shape]) -> Mapping[str, Any]:
    return {field.name: field.default for field in msgspec.structs.fields(shape)}


def _other_system_hit(hit: ForeignHit) -> OtherSystemHit:
    return OtherSystemHit(
        systems=hit.systems,
        id=hit.id,
        rank=hit.rank,
        score=round(hit.score, 3),
        text=hit.text,
        title=hit.title,
        line=hit.line,
    )


def _likely(relevance: float | None) -> float | None:
    return None if relevance is None else round(relevance, 2)


def _resolved(resolution: Resolution) -> Resolved:
    text, whole = _start(resolution.content, WHOLE_CHARACTERS)
    return Resolved(id=resolution.id, content=text, whole_characters=whole)


def _health(health: Health) -> str | None:
    notes = [
        f"the {leg.leg} leg did not answer ({leg.reason})"
        for leg in health.legs
        if not leg.answered
    ]
    if health.not_embedded:
        notes.append(f"{health.not_embedded} not embedded yet, found only by words")
    if health.not_in_graph:
        notes.append(f"{health.not_in_graph} not in the concept graph yet")
    if health.last_error:
        notes.append(f"last error: {health.last_error}")
    notes.extend(health.notes)
    return "; ".join(notes) or None


def _fields(memory: Memory) -> dict[str, Any]:
    fields = {
        name: getattr(memory, name)
        for name in _DEFAULTS
        if getattr(memory, name) != _DEFAULTS[name]
    }
    given = {"category": memory.category, "scope": memory.scope, "revision": memory.revision}
    return {**fields, **given, "source": _source(memory.source)}


def _source(source: Source | None) -> str | None:
    if source is None or source.start_line is None:
        return source.uri if source else None
    return f"{source.uri}:{source.start_line}-{source.end_line or source.start_line}"


def _start(text: str, most: int) -> tuple[str, int | None]:
    return (text, None) if len(text) <= most else (text[:most].rstrip() + " ...", len(text))


def _most_used(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_USED])
