"""Looking at the concept graph: its concepts, and what lies around one of them or around a memory."""

from __future__ import annotations

import difflib
import uuid
from typing import TYPE_CHECKING

import msgspec

from trivet.contract import ConceptsRequest, GraphRequest
from trivet.errors import InvalidInput, NotFound
from trivet.graph.canonical import canonical, form
from trivet.ids import check_id
from trivet.memory.engine import Engine
from trivet.memory.whole_ids import ids_starting_with, starts_an_id, whole_id
from trivet.search.filters import filter_of
from trivet.secrets import masked
from trivet.types import Concept, ConceptPage, Filter, GraphNode, Memory, Neighbourhood

if TYPE_CHECKING:
    from trivet.store import Store

# Enough of a memory without a title to know it again.
LABEL_CHARACTERS = 80
# A name that is not known is compared with so many of the most frequent concepts, and of those that share a word.
COMPARED = 2_000
SHARING = 200
SUGGESTED = 5
SHORTEST_SHARED_WORD = 3


def concepts(engine: Engine, request: ConceptsRequest) -> ConceptPage:
    contains = None if request.text is None else canonical(request.text)
    if contains == "":
        raise InvalidInput(f"text: {request.text!r} holds no letter or digit to look for. Give a part of a name.")
    filter = filter_of(request, engine.settings, engine.viewer)
    page = engine.store.concepts.page(filter, contains, request.kind, request.sort, request.limit, request.offset)
    return msgspec.structs.replace(page, not_in_graph=_waiting(engine))


def graph(engine: Engine, request: GraphRequest) -> Neighbourhood:
    filter = filter_of(request, engine.settings, engine.viewer)
    start = _start(engine, request.start, filter)
    found = engine.store.concepts.around(start, filter, request.depth, request.limit)
    return msgspec.structs.replace(found, nodes=_labelled(engine.store, found.nodes), not_in_graph=_waiting(engine))


def _waiting(engine: Engine) -> int:
    return engine.store.graph.backlog("rules").waiting


def _start(engine: Engine, text: str, filter: Filter) -> Memory | Concept:
    """A whole id, else a concept by that name, else a memory whose id starts so: "cafe" is a word first."""
    store = engine.store
    if _is_id(text):
        return _memory(store, check_id(text.strip(), "start"), filter)
    concept = store.concepts.find(canonical(text), form(text), filter)
    if concept is not None:
        return concept
    if starts_an_id(text) and ids_starting_with(engine, text, "memory"):
        return _memory(store, whole_id(engine, text, "memory", "start"), filter)
    raise NotFound(f"There is no concept {text!r} here. {_what_else(store, text, filter)}")


def _memory(store: Store, id: str, filter: Filter) -> Memory:
    memory = store.memories.get(id)
    if not store.memories.is_visible(memory.id, filter):
        raise NotFound(f"The filters or the time keep memory {memory.id} out. Loosen them, or start elsewhere.")
    return memory


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text.strip())) == text.strip().lower()
    except ValueError:
        return False


def _what_else(store: Store, text: str, filter: Filter) -> str:
    advice = "`concepts` lists all there are; a memory's id works too."
    near = _nearest(store, text, filter)
    return f"Near to it are: {', '.join(near)}. {advice}" if near else advice


def _nearest(store: Store, text: str, filter: Filter) -> list[str]:
    """Names that are spelled nearly so, then names that share a word."""
    words = [word for word in form(text).split() if len(word) >= SHORTEST_SHARED_WORD]
    sharing = {
        concept.name: concept.label
        for word in words
        for concept in store.concepts.page(filter, canonical(word), None, "memories", SHARING, 0).concepts
    }
    frequent = store.concepts.page(filter, None, None, "memories", COMPARED, 0).concepts
    labels = {**{concept.name: concept.label for concept in frequent}, **sharing}
    close = difflib.get_close_matches(canonical(text), labels, SUGGESTED)
    return [labels[name] for name in dict.fromkeys([*close, *sharing])][:SUGGESTED]


def _labelled(store: Store, nodes: tuple[GraphNode, ...]) -> tuple[GraphNode, ...]:
    """Memories by their titles or first words; a sensitive one shows neither."""
    memories = store.memories.get_many([node.id for node in nodes if node.kind == "memory"])
    return tuple(_as_shown(node, memories.get(node.id)) for node in nodes)


def _as_shown(node: GraphNode, memory: Memory | None) -> GraphNode:
    if memory is None:  # a concept, or a memory purged this moment, which keeps its id
        return node
    shown = masked(memory)
    words = " ".join((shown.title or shown.content).split())
    label = words if len(words) <= LABEL_CHARACTERS else words[: LABEL_CHARACTERS - 1].rstrip() + "…"
    return msgspec.structs.replace(node, label=label, sensitive=memory.sensitive)
