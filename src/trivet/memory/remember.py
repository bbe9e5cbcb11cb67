"""The write path: validate -> guard -> store -> report -> wake the worker.

The guard seals secrets behind placeholders or refuses them. One transaction stores the row, its
revision, its index entry, its jobs and its links. An edit takes the same path and becomes the next
revision.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from trivet.analyse import analyse, language_and_terms, language_markers, language_of_text
from trivet.common.clock import moment, now, parse_time_expression
from trivet.common.ids import check_id, new_id
from trivet.contract import Edit, Remember
from trivet.errors import Conflict, InvalidInput, StoreError
from trivet.memory.engine import Engine
from trivet.memory.on_save import find_possible_updates, near_duplicates
from trivet.memory.sealed_secrets import (
    add_entries,
    check_guess_limit,
    may_reveal,
    record_guess,
    visible_memory,
    write_with_current_key,
)
from trivet.memory.similarity import fingerprint
from trivet.search.memory_times import encode_mentioned_times
from trivet.secrets.masking import masked
from trivet.store.records import Document, Entry
from trivet.types import LOCAL, Link, LinkKind, Memory, Remembered, Revision, Sealed, Source

T = TypeVar("T")
logger = logging.getLogger("trivet.memory.remember")


def remember(engine: Engine, request: Remember) -> Remembered:
    """Store one memory, and spend a few milliseconds on what it may update."""
    ((entry, remembered),) = _store_all(engine, [request])
    try:
        if remembered.status == "unchanged":
            return remembered
        updates = _empty_if_store_fails(
            lambda: find_possible_updates(engine, entry.memory, request.supersedes)
        )
        return msgspec.structs.replace(remembered, may_update=updates)
    finally:
        # Last, so that the worker and the search for updates do not compete for the embedder.
        engine.worker.saved(len(entry.memory.content))


def remember_many(engine: Engine, requests: Sequence[Remember]) -> list[Remembered]:
    """Store several memories in one transaction: all or none."""
    written = _store_all(engine, requests)
    engine.worker.wake()
    return [remembered for _, remembered in written]


def _store_all(engine: Engine, requests: Sequence[Remember]) -> list[tuple[Entry, Remembered]]:
    guarded = guard_all(engine, requests)
    entries = [entry for entry, _ in guarded]
    if any(request.supersedes for request in requests):
        with engine.store.together():
            added = add_entries(engine, entries)
            for entry, request in zip(entries, requests, strict=True):
                for old in dict.fromkeys(request.supersedes):
                    join(engine, entry.memory.id, "supersedes", check_id(old, "supersedes"))
    else:
        added = add_entries(engine, entries)
    alike = _empty_if_store_fails(lambda: near_duplicates(engine, entries)) or ((),) * len(entries)
    return [
        (
            entry,
            Remembered(
                id=entry.memory.id,
                status=done.status,
                revision=done.revision,
                near_duplicates=duplicates,
                redacted=redacted,
            ),
        )
        for (entry, redacted), done, duplicates in zip(guarded, added, alike, strict=True)
    ]


def _empty_if_store_fails(look: Callable[[], tuple[T, ...]]) -> tuple[T, ...]:
    """Return () on an error: the memory is stored, so the save must not fail."""
    try:
        return look()
    except StoreError as error:
        logger.warning("A memory was stored, but looking for similar ones failed: %s", error)
        return ()


def edit(engine: Engine, request: Edit) -> Memory:
    """Store a memory's changes as its next revision, if there are any."""
    old = engine.store.memories.get_for_change(check_id(request.id), "edit")
    if old.state == "deleted":
        raise Conflict(f"Memory {old.id} was forgotten. Restore it before you edit it.")
    if request.if_revision is not None and request.if_revision != old.revision:
        raise Conflict(
            f"Memory {old.id} is at revision {old.revision}, not {request.if_revision}. Read "
            "it again, then edit."
        )
    new = _with_changes(engine, old, request)
    if new == old:
        return masked(old)
    return masked(rewrite(engine, new, "edit", unless=old))


Guarded = tuple[Entry, Mapping[str, int]]


def guard_all(engine: Engine, requests: Sequence[Remember]) -> list[Guarded]:
    """Guard each request, given the secrets of earlier ones with its id."""
    guarded: list[Guarded] = []
    earlier: dict[str, list[Sealed]] = {}
    current = moment(now())  # one time for all, so that none counts as newer than another
    for request in requests:
        memory = new_memory(engine, request, current)
        entry, redacted = guard(
            engine, memory, earlier=earlier.get(memory.id, ()), fresh=request.id is None
        )
        if redacted and request.id is not None:
            _note_wrong_guess(engine, entry.memory)
        if entry.secrets:
            earlier.setdefault(memory.id, []).extend(entry.secrets)
        guarded.append((entry, redacted))
    return guarded


def _note_wrong_guess(engine: Engine, memory: Memory) -> None:
    """Count a write that is refused, since that reveals a wrong guess."""
    held = visible_memory(engine, memory.id)
    if held is not None and held.owner == engine.viewer and held.content != memory.content:
        record_guess(engine, held)


def guard(
    engine: Engine,
    memory: Memory,
    history: tuple[Revision, ...] = (),
    *,
    earlier: Sequence[Sealed] = (),
    fresh: bool = False,
) -> Guarded:
    """Return the memory as it may be stored, and the number of removed secrets by kind.

    A known id keeps its secrets' names, so that a retry gives the same text, but only for the
    owner: others could learn from the names whether a guess was right.
    """
    held = None if fresh else visible_memory(engine, memory.id)
    is_others = held is not None and held.owner != engine.viewer
    protected = engine.guard.protect(
        memory,
        memory.revision,
        lambda: [*(() if fresh else engine.store.secrets.of(memory.id)), *earlier],
        history,
        recognise=not is_others,
    )
    if held is not None and protected.redacted:
        check_guess_limit(engine, held)
        if is_others:
            record_guess(engine, held)
    entry = Entry(
        protected.memory, document_of(protected.memory), protected.history, protected.secrets
    )
    return entry, protected.redacted


def rewrite(engine: Engine, memory: Memory, action: str, unless: Memory | None = None) -> Memory:
    """Write a memory as its next revision, unless it equals `unless` without its secrets."""
    protected = engine.guard.protect(
        memory,
        memory.revision + 1,
        lambda: engine.store.secrets.of(memory.id),
        refuse=action != "forget",
        recognise=may_reveal(engine, memory.owner),
    )
    if protected.memory == unless:
        return protected.memory
    entry = Entry(protected.memory, document_of(protected.memory), (), protected.secrets)
    written = write_with_current_key(
        engine, [entry], lambda entries: _replaced(engine, entries[0], action)
    )
    engine.worker.saved(len(written.content))
    return written


def _replaced(engine: Engine, entry: Entry, action: str) -> Memory:
    return engine.store.memories.replace(entry.memory, entry.document, action, entry.secrets)


def new_memory(engine: Engine, request: Remember, current: datetime | None = None) -> Memory:
    current = current or moment(now())
    memory = Memory(
        id=engine.store.memories.claim(check_id(request.id))
        if request.id is not None
        else new_id(),
        content=request.content,
        title=request.title or None,
        category=request.category,
        tags=tuple(dict.fromkeys(request.tags)),
        importance=request.importance,
        confidence=request.confidence,
        expanded_keywords=tuple(dict.fromkeys(request.expanded_keywords)),
        scope=request.scope or engine.settings.scope,
        source=_source(request.source, request.start_line, request.end_line),
        created_at=_optional_time(request.created_at or None, "created_at") or current,
        updated_at=current,
        valid_from=_optional_time(request.valid_from, "valid_from"),
        valid_to=_optional_time(request.valid_to, "valid_to"),
        sensitive=request.sensitive,
        owner=engine.viewer or LOCAL,
    )
    check_memory(engine, memory)
    return memory


def check_memory(engine: Engine, memory: Memory) -> None:
    """Raise InvalidInput for a rule across fields or a disallowed value."""
    known = engine.settings.categories
    if memory.category not in known:
        raise InvalidInput(
            f"category: {engine.guard.without_secrets(memory.category)!r} is not one of "
            f"{', '.join(known)}. "
            "Use one of these, or add yours to `categories` in trivet.toml."
        )
    if memory.valid_from and memory.valid_to and memory.valid_from >= memory.valid_to:
        raise InvalidInput(
            "valid_from must be earlier than valid_to; otherwise it would never be true."
        )
    source = memory.source
    if source and source.start_line and source.end_line and source.start_line > source.end_line:
        raise InvalidInput("start_line must not be after end_line.")


def document_of(memory: Memory) -> Document:
    """Return what the memory is indexed by, in the language of its content."""
    if memory.title:
        language = language_of_text(f"{memory.title}\n{memory.content}")
        content = analyse(memory.content, language)
    else:
        language, content = language_and_terms(memory.content)
    keywords = (term for keyword in memory.expanded_keywords for term in analyse(keyword, language))
    return Document(
        content=content,
        title=analyse(memory.title or "", language),
        keywords=(*keywords, *language_markers(language)),
        tags=tuple(term for tag in memory.tags for term in analyse(tag, language)),
        category=analyse(memory.category),
        fingerprint=fingerprint(memory.content),
        times=encode_mentioned_times(memory),
    )


def _with_changes(engine: Engine, old: Memory, request: Edit) -> Memory:
    given = {
        field: getattr(request, field)
        for field in ("content", "title", "category", "tags", "importance", "confidence",
                      "expanded_keywords", "scope", "valid_from", "valid_to", "state", "sensitive")
        if getattr(request, field) is not UNSET
    }  # fmt: skip
    _check_state(old, given)
    for field in ("valid_from", "valid_to"):
        if given.get(field) is not None:
            given[field] = moment(parse_time_expression(given[field], field))
    for field in ("tags", "expanded_keywords"):
        if field in given:
            given[field] = tuple(dict.fromkeys(given[field]))
    if "title" in given:
        given["title"] = given["title"] or None
    if {request.source, request.start_line, request.end_line} != {UNSET}:
        given["source"] = _changed_source(old.source, request)
    new = msgspec.structs.replace(old, **given)
    check_memory(engine, new)
    return new


def _check_state(old: Memory, given: Mapping[str, Any]) -> None:
    state = given.get("state", old.state)
    if state != old.state and (state not in ("active", "archived") or old.state == "superseded"):
        raise InvalidInput(
            f"state: it cannot be set from {old.state} to {state}. Edit sets active and archived; "
            "forget deletes, restore brings back, and a supersedes link makes superseded."
        )


def _changed_source(old: Source | None, request: Edit) -> Source | None:
    if request.source is None and {request.start_line, request.end_line} == {UNSET}:
        return None
    uri = (old.uri if old else None) if request.source is UNSET else request.source
    start = (old.start_line if old else None) if request.start_line is UNSET else request.start_line
    end = (old.end_line if old else None) if request.end_line is UNSET else request.end_line
    return _source(uri, start, end)


def _source(uri: str | None, start_line: int | None, end_line: int | None) -> Source | None:
    if uri is None:
        if start_line is not None or end_line is not None:
            raise InvalidInput(
                "start_line and end_line need a source. Give the file or URI they belong to."
            )
        return None
    return Source(uri=uri, start_line=start_line, end_line=end_line)


def _optional_time(text: str | None, field: str) -> datetime | None:
    return None if text is None else moment(parse_time_expression(text, field))


def join(engine: Engine, source: str, kind: LinkKind, target: str) -> Link:
    """Link two memories, neither of them forgotten."""
    source, target = check_id(source, "source"), check_id(target, "target")
    if source == target:
        raise InvalidInput(f"A memory cannot be linked to itself ({source}).")
    memories = engine.store.memories.get_many([source, target])
    for id in (source, target):
        if id in memories and memories[id].state == "deleted":
            raise Conflict(f"Memory {id} was forgotten. Restore it before you link it.")
    made = Link(kind=kind, source=source, target=target, created_at=moment(now()))
    engine.store.links.add(made)
    return made
