"""The knowledge graph of the MCP reference memory server, stored as memories.

Each observation is a memory titled with its entity, so that recall and history apply to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

from trivet.contract.parameters import (
    MAX_SOURCE_CHARACTERS,
    MAX_TAG_CHARACTERS,
    MAX_TITLE_CHARACTERS,
)
from trivet.errors import InvalidInput, NotFound
from trivet.secrets.detect import find, without_secrets
from trivet.trivet import Trivet
from trivet.types import Memory

SCOPE = "reference-memory"
PREFIX = "memory://knowledge-graph/"
PAGE = 1000
# Entities returned by a search by meaning.
FOUND = 10


class Entity(msgspec.Struct, rename="camel"):
    name: str
    entity_type: str
    observations: list[str]


class Relation(
    msgspec.Struct,
    frozen=True,
    rename={"start": "from", "to": "to", "relation_type": "relationType"},
):
    start: str
    to: str
    relation_type: str


class Graph(msgspec.Struct):
    entities: list[Entity]
    relations: list[Relation]


class Added(msgspec.Struct, rename="camel"):
    entity_name: str
    contents: list[str]


class Deleted(msgspec.Struct, rename="camel"):
    entity_name: str
    observations: list[str]


class Piece(msgspec.Struct, frozen=True):
    kind: str
    names: Mapping[str, str]
    memory: Memory


class KnowledgeGraph:
    """The operations of the reference server; the caller must serialize writes."""

    def __init__(self, memory: Trivet) -> None:
        self._memory = memory

    def create_entities(self, entities: Iterable[Entity]) -> list[Entity]:
        known = {piece.names["name"] for piece in self._pieces() if piece.kind == "entity"}
        new = {
            entity.name: entity for entity in reversed(list(entities)) if entity.name not in known
        }
        created = list(reversed(new.values()))  # the first of two with the same name
        self._store(row for entity in created for row in entity_rows(entity))
        return created

    def create_relations(self, relations: Iterable[Relation]) -> list[Relation]:
        known = set(self.read().relations)
        created = [relation for relation in dict.fromkeys(relations) if relation not in known]
        self._store(relation_row(relation) for relation in created)
        return created

    def add_observations(self, additions: Iterable[Added]) -> list[tuple[str, list[str]]]:
        entities = {entity.name: entity for entity in self.read().entities}
        rows: list[dict[str, Any]] = []
        added = []
        for one in additions:
            entity = entities.get(one.entity_name)
            if entity is None:
                raise NotFound(f"Entity with name {one.entity_name} not found")
            new = [text for text in dict.fromkeys(one.contents) if text not in entity.observations]
            entity.observations += new
            rows += [observation_row(entity, text) for text in new]
            added.append((one.entity_name, new))
        self._store(rows)
        return added

    def delete_entities(self, names: Collection[str]) -> None:
        """Delete what belongs to entities first, so that an interrupted call can repeat."""
        gone = [piece for piece in self._pieces() if not {*piece.names.values()}.isdisjoint(names)]
        self._forget(piece for piece in gone if piece.kind != "entity" and _touches(piece, names))
        self._forget(
            piece for piece in gone if piece.kind == "entity" and piece.names["name"] in names
        )

    def delete_observations(self, deletions: Iterable[Deleted]) -> None:
        gone = {
            (one.entity_name, text) for one in deletions for text in _as_stored(one.observations)
        }
        self._forget(
            piece
            for piece in self._pieces()
            if piece.kind == "observation" and (piece.names["entity"], piece.memory.content) in gone
        )

    def delete_relations(self, relations: Iterable[Relation]) -> None:
        gone = set(relations)
        self._forget(
            piece
            for piece in self._pieces()
            if piece.kind == "relation" and _relation(piece) in gone
        )

    def read(self) -> Graph:
        return _graph(self._pieces())

    def open(self, names: Collection[str]) -> Graph:
        return _around(self.read(), names)

    def search(self, query: str) -> Graph:
        pieces = list(self._pieces())
        graph, wanted = _graph(pieces), query.lower()
        holding = [
            entity.name
            for entity in graph.entities
            if any(wanted in text.lower() for text in _texts(entity))
        ]
        return _around(graph, holding or self._recalled(query, pieces))

    def _recalled(self, query: str, pieces: Iterable[Piece]) -> list[str]:
        answer = self._memory.recall(query, scope=SCOPE, limit=FOUND, collapse=False)
        if answer.nothing_relevant:
            return []
        ends = {piece.memory.id: piece.names for piece in pieces}
        found = [
            name
            for hit in answer.hits
            for key, name in ends.get(hit.id, {}).items()
            if key != "type"
        ]
        return list(dict.fromkeys(found))

    def _pieces(self) -> list[Piece]:
        found: dict[str, Memory] = {}
        while True:
            page = self._memory.list(scope=SCOPE, limit=PAGE, offset=len(found))
            found |= {memory.id: memory for memory in page.memories}
            if len(page.memories) < PAGE:
                break
        pieces = [piece for memory in found.values() if (piece := _piece(memory))]
        return sorted(
            pieces,
            key=lambda piece: (piece.memory.created_at, _line(piece.memory), piece.memory.id),
        )

    def _store(self, rows: Iterable[dict[str, Any]]) -> None:
        if numbered := [{**row, "start_line": line} for line, row in enumerate(rows, 1)]:
            self._memory.remember_many(numbered)

    def _forget(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            self._memory.forget(piece.memory.id)


def entity_rows(entity: Entity) -> Iterator[dict[str, Any]]:
    yield {
        **_row("entity", name=entity.name, type=entity.entity_type),
        "content": f"{entity.name} ({entity.entity_type})",
        "title": entity.name,
        "tags": _tags(entity),
    }
    yield from (observation_row(entity, text) for text in dict.fromkeys(entity.observations))


def observation_row(entity: Entity, text: str) -> dict[str, Any]:
    if not text:
        raise InvalidInput(
            f"An observation of {entity.name} is empty. Leave it out; nothing was stored."
        )
    return {
        **_row("observation", entity=entity.name),
        "content": text,
        "title": entity.name,
        "tags": _tags(entity),
    }


def relation_row(relation: Relation) -> dict[str, Any]:
    sentence = f"{relation.start} {relation.relation_type.replace('_', ' ')} {relation.to}."
    names = {"from": relation.start, "type": relation.relation_type, "to": relation.to}
    return {**_row("relation", **names), "content": sentence}


def _row(kind: str, **names: str) -> dict[str, Any]:
    """Return scope and source; names must round-trip, so none may be cut or encrypted."""
    for name in names.values():
        if len(name) > MAX_TITLE_CHARACTERS:
            raise InvalidInput(
                f"{name[:40]}...: a name has at most {MAX_TITLE_CHARACTERS} characters. "
                "Nothing was stored."
            )
        if find(name):
            raise InvalidInput(
                f"{kind}: a name looks like a secret. Put it in an observation, which is encrypted."
            )
    address = f"{PREFIX}{kind}?" + "&".join(
        f"{key}={_escaped(name)}" for key, name in names.items()
    )
    if len(address) > MAX_SOURCE_CHARACTERS:
        raise InvalidInput(f"{kind}: its names are too long in total. Nothing was stored.")
    return {"scope": SCOPE, "source": address}


def _escaped(name: str) -> str:
    return name.replace("%", "%25").replace("&", "%26")


def _tags(entity: Entity) -> tuple[str, ...]:
    return (entity.entity_type,) if 0 < len(entity.entity_type) <= MAX_TAG_CHARACTERS else ()


def _piece(memory: Memory) -> Piece | None:
    if memory.source is None or not memory.source.uri.startswith(PREFIX):
        return None
    kind, _, names = memory.source.uri.removeprefix(PREFIX).partition("?")
    pairs = (pair.partition("=") for pair in names.split("&"))
    return Piece(kind, {key: unquote(name) for key, _, name in pairs}, memory)


def _line(memory: Memory) -> int:
    return memory.source.start_line or 0 if memory.source else 0


def _graph(pieces: Iterable[Piece]) -> Graph:
    pieces = list(pieces)
    kinds = {
        piece.names["name"]: piece.names["type"]
        for piece in reversed(pieces)
        if piece.kind == "entity"
    }
    texts: dict[str, dict[str, None]] = {
        piece.names["name"]: {} for piece in pieces if piece.kind == "entity"
    }
    for piece in pieces:
        if piece.kind == "observation" and piece.names["entity"] in texts:
            texts[piece.names["entity"]][piece.memory.content] = None
    entities = [Entity(name, kinds[name], list(said)) for name, said in texts.items()]
    relations = dict.fromkeys(_relation(piece) for piece in pieces if piece.kind == "relation")
    return Graph(entities, list(relations))


def _relation(piece: Piece) -> Relation:
    return Relation(piece.names["from"], piece.names["to"], piece.names["type"])


def _touches(piece: Piece, names: Collection[str]) -> bool:
    return any(
        name in names for key, name in piece.names.items() if key in ("entity", "from", "to")
    )


def _texts(entity: Entity) -> Iterator[str]:
    yield from (entity.name, entity.entity_type, *entity.observations)


def _around(graph: Graph, names: Collection[str]) -> Graph:
    entities = [entity for entity in graph.entities if entity.name in names]
    shown = {entity.name for entity in entities}
    return Graph(
        entities, [one for one in graph.relations if one.start in shown or one.to in shown]
    )


def _as_stored(texts: Iterable[str]) -> Iterator[str]:
    """Yield each text and its form with placeholders: callers may give either."""
    for text in texts:
        yield from (text, without_secrets(text))
