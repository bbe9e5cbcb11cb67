"""Looking at memories without a query: one by id, pages, counts, feedback, the concept graph."""

from __future__ import annotations

import difflib
import uuid
from typing import TYPE_CHECKING

import msgspec

from trivet.common.ids import check_id
from trivet.contract import (
    CategoriesRequest,
    ConceptsRequest,
    DaysRequest,
    FeedbackRequest,
    Get,
    GraphRequest,
    List,
    SourcesRequest,
    TagsRequest,
    UsageRequest,
)
from trivet.errors import InvalidInput, NotFound
from trivet.graph.concepts import canonical, form
from trivet.memory.engine import Engine
from trivet.memory.perform import complete_id, ids_with_prefix, is_id_prefix
from trivet.search.query import build_filter
from trivet.secrets.masking import masked
from trivet.types import (
    Concept,
    ConceptPage,
    Count,
    Filter,
    GraphNode,
    Memory,
    Neighbourhood,
    Page,
    Usage,
)

if TYPE_CHECKING:
    from trivet.store import Store


def get(engine: Engine, request: Get) -> Memory:
    return masked(engine.store.memories.get(check_id(request.id)), request.reveal, engine.viewer)


def page(engine: Engine, request: List) -> Page:
    filter = build_filter(request, engine.settings, engine.viewer)
    after = check_id(request.after, "after") if request.after else None
    found = engine.store.memories.page(filter, request.sort, request.limit, request.offset, after)
    shown = tuple(masked(memory, request.reveal, engine.viewer) for memory in found.memories)
    return msgspec.structs.replace(found, memories=shown)


def tags(engine: Engine, request: TagsRequest) -> tuple[Count, ...]:
    return engine.store.memories.tags(
        build_filter(request, engine.settings, engine.viewer), request.limit
    )


def categories(engine: Engine, request: CategoriesRequest) -> tuple[Count, ...]:
    """Return every configured category, even empty ones, and others in use."""
    filter = build_filter(request, engine.settings, engine.viewer)
    held = {count.name: count.memories for count in engine.store.memories.categories(filter)}
    names = dict.fromkeys([*engine.settings.categories, *sorted(held)])
    return tuple(Count(name=name, memories=held.get(name, 0)) for name in names)


def sources(engine: Engine, request: SourcesRequest) -> tuple[Count, ...]:
    filter = build_filter(request, engine.settings, engine.viewer)
    return engine.store.memories.sources(filter, request.text, request.limit)


def days(engine: Engine, request: DaysRequest) -> tuple[Count, ...]:
    filter = build_filter(request, engine.settings, engine.viewer)
    return engine.store.memories.days(filter, request.utc_offset, request.limit)


def feedback(engine: Engine, request: FeedbackRequest) -> Usage:
    memory = engine.store.memories.get(check_id(request.id))
    query = " ".join(engine.guard.without_secrets(request.query or "").split())
    engine.store.usage.judge(memory.id, query, request.verdict)
    return engine.store.usage.of(memory.id)


def usage(engine: Engine, request: UsageRequest) -> Usage:
    """Return a memory's counts, including those not yet written."""
    memory = engine.store.memories.get(check_id(request.id))
    engine.usage_counter.flush()
    return engine.store.usage.of(memory.id)


MAX_LABEL_CHARACTERS = 80
# Concepts that an unknown name is compared with: frequent ones, and those sharing a word.
NAMES_COMPARED = 2_000
NAMES_SHARING_A_WORD = 200
MAX_SUGGESTIONS = 5
MIN_SHARED_WORD = 3


def concepts(engine: Engine, request: ConceptsRequest) -> ConceptPage:
    contains = None if request.text is None else canonical(request.text)
    if contains == "":
        raise InvalidInput(
            f"text: {request.text!r} contains no letter or digit. Give part of a concept's name."
        )
    filter = build_filter(request, engine.settings, engine.viewer)
    page = engine.store.concepts.page(
        filter, contains, request.kind, request.sort, request.limit, request.offset
    )
    return msgspec.structs.replace(page, not_in_graph=_waiting(engine))


def graph(engine: Engine, request: GraphRequest) -> Neighbourhood:
    filter = build_filter(request, engine.settings, engine.viewer)
    start = _start(engine, request.start, filter)
    found = engine.store.concepts.around(start, filter, request.depth, request.limit)
    return msgspec.structs.replace(
        found, nodes=_labelled(engine.store, found.nodes), not_in_graph=_waiting(engine)
    )


def _waiting(engine: Engine) -> int:
    return engine.store.graph.backlog("rules").waiting


def _start(engine: Engine, text: str, filter: Filter) -> Memory | Concept:
    """Prefer a concept over an id prefix, since "cafe" is both."""
    store = engine.store
    if _is_id(text):
        return _memory(store, check_id(text.strip(), "start"), filter)
    concept = store.concepts.find(canonical(text), form(text), filter)
    if concept is not None:
        return concept
    if is_id_prefix(text) and ids_with_prefix(engine, text, "memory"):
        return _memory(store, complete_id(engine, text, "memory", "start"), filter)
    raise NotFound(f"There is no concept {text!r}. {_suggestions(store, text, filter)}")


def _memory(store: Store, id: str, filter: Filter) -> Memory:
    memory = store.memories.get(id)
    if not store.memories.is_visible(memory.id, filter):
        raise NotFound(f"The filters exclude memory {memory.id}. Relax them, or start elsewhere.")
    return memory


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text.strip())) == text.strip().lower()
    except ValueError:
        return False


def _suggestions(store: Store, text: str, filter: Filter) -> str:
    advice = "`concepts` lists them all; a memory's id works too."
    near = _nearest(store, text, filter)
    return f"Similar names: {', '.join(near)}. {advice}" if near else advice


def _nearest(store: Store, text: str, filter: Filter) -> list[str]:
    words = [word for word in form(text).split() if len(word) >= MIN_SHARED_WORD]
    sharing = {
        concept.name: concept.label
        for word in words
        for concept in store.concepts.page(
            filter, canonical(word), None, "memories", NAMES_SHARING_A_WORD, 0
        ).concepts
    }
    frequent = store.concepts.page(filter, None, None, "memories", NAMES_COMPARED, 0).concepts
    labels = {**{concept.name: concept.label for concept in frequent}, **sharing}
    close = difflib.get_close_matches(canonical(text), labels, MAX_SUGGESTIONS)
    return [labels[name] for name in dict.fromkeys([*close, *sharing])][:MAX_SUGGESTIONS]


def _labelled(store: Store, nodes: tuple[GraphNode, ...]) -> tuple[GraphNode, ...]:
    memories = store.memories.get_many([node.id for node in nodes if node.kind == "memory"])
    return tuple(_as_shown(node, memories.get(node.id)) for node in nodes)


def _as_shown(node: GraphNode, memory: Memory | None) -> GraphNode:
    if memory is None:  # a concept, or a memory purged meanwhile
        return node
    shown = masked(memory)
    words = " ".join((shown.title or shown.content).split())
    label = (
        words
        if len(words) <= MAX_LABEL_CHARACTERS
        else words[: MAX_LABEL_CHARACTERS - 1].rstrip() + "…"
    )
    return msgspec.structs.replace(node, label=label, sensitive=memory.sensitive)
