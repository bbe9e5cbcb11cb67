"""Looking at memories without a query: one by its id, pages of them, counts by tag, category, source and day."""

from __future__ import annotations

import msgspec

from trivet.contract import CategoriesRequest, DaysRequest, Get, List, SourcesRequest, TagsRequest
from trivet.ids import check_id
from trivet.memory.engine import Engine
from trivet.search.filters import filter_of
from trivet.secrets import masked
from trivet.types import Count, Memory, Page


def get(engine: Engine, request: Get) -> Memory:
    return masked(engine.store.memories.get(check_id(request.id)), request.reveal, engine.viewer)


def page(engine: Engine, request: List) -> Page:
    filter = filter_of(request, engine.settings, engine.viewer)
    after = check_id(request.after, "after") if request.after else None
    found = engine.store.memories.page(filter, request.sort, request.limit, request.offset, after)
    shown = tuple(masked(memory, request.reveal, engine.viewer) for memory in found.memories)
    return msgspec.structs.replace(found, memories=shown)


def tags(engine: Engine, request: TagsRequest) -> tuple[Count, ...]:
    return engine.store.memories.tags(filter_of(request, engine.settings, engine.viewer), request.limit)


def categories(engine: Engine, request: CategoriesRequest) -> tuple[Count, ...]:
    """Every configured category, also those that no visible memory has, and any other that is in use."""
    filter = filter_of(request, engine.settings, engine.viewer)
    held = {count.name: count.memories for count in engine.store.memories.categories(filter)}
    names = dict.fromkeys([*engine.settings.categories, *sorted(held)])
    return tuple(Count(name=name, memories=held.get(name, 0)) for name in names)


def sources(engine: Engine, request: SourcesRequest) -> tuple[Count, ...]:
    filter = filter_of(request, engine.settings, engine.viewer)
    return engine.store.memories.sources(filter, request.text, request.limit)


def days(engine: Engine, request: DaysRequest) -> tuple[Count, ...]:
    filter = filter_of(request, engine.settings, engine.viewer)
    return engine.store.memories.days(filter, request.utc_offset, request.limit)
