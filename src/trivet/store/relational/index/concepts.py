"""The graph as users see it: concepts and neighborhoods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from trivet.common.clock import moment_or_none, now
from trivet.errors import NotFound
from trivet.graph.concepts import ROLES
from trivet.graph.walk import MIN_SURE_RATIO
from trivet.memory_fields import as_json
from trivet.store.relational.database import Connection, Database, Parameters, StorePart
from trivet.store.relational.index.visibility import filter_parameters
from trivet.types import (
    Concept,
    ConceptPage,
    ConceptSort,
    Filter,
    GraphEdge,
    GraphNode,
    Memory,
    Neighbourhood,
)

# Bounds the spellings of a concept; one found in code may have dozens.
MAX_ALIASES = 10

_ORDERS: dict[ConceptSort, str] = {"memories": "k.held DESC, c.name", "name": "c.name"}

Node = tuple[Literal["memory", "concept"], int]


class Concepts(StorePart):
    file = "concepts"

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._known = VisibleConcepts(database)

    def page(
        self,
        filter: Filter,
        contains: str | None,
        kind: str | None,
        sort: ConceptSort,
        limit: int,
        offset: int,
    ) -> ConceptPage:
        """Return a page; `contains` matches squeezed names (graph/concepts.py)."""
        parameters = filter_parameters(filter, now())
        known = self._known.select(parameters, None, contains, kind, sort)
        shown = self._known.with_labels(known[offset : offset + limit], parameters)
        return ConceptPage(concepts=tuple(shown.values()), total=len(known), offset=offset)

    def find(self, name: str, form: str, filter: Filter) -> Concept | None:
        """Return the concept of this name, or the one most often written so."""
        keys = [row[0] for row in self._rows("by_name", name=name, form=form)]
        known = self._known.select(without_time(filter), keys)
        found = self._known.with_labels(known, without_time(filter)).values()
        return min(found, key=lambda one: (one.name != name, -one.memories, one.name), default=None)

    def around(
        self, start: Memory | Concept, filter: Filter, depth: int, most: int
    ) -> Neighbourhood:
        with self._database.snapshot() as connection:
            return NeighbourhoodSearch(connection, self._known, filter).survey(start, depth, most)


class ConceptCount(NamedTuple):
    key: int
    name: str
    held: int  # number of visible memories


class VisibleConcepts(StorePart):
    """Concepts that visible memories mention with enough certainty."""

    file = "concepts"

    def select(
        self,
        parameters: Parameters,
        among: Sequence[int] | None = None,
        contains: str | None = None,
        kind: str | None = None,
        sort: ConceptSort = "memories",
    ) -> list[ConceptCount]:
        fitting = {"contains": contains, "kind": kind}
        with self._database.errors():
            connection = self._database.read()
            if among is None and (contains or kind):
                among = [row[0] for row in connection.execute(self._sql["candidates"], fitting)]
            values = {
                **parameters,
                **fitting,
                "sure_per_maybe": MIN_SURE_RATIO,
                "concepts": as_json(among or ()),
            }
            sql = connection.sql.ordered(
                self.file, "known" if among is None else "known_among", _ORDERS[sort]
            )
            return [ConceptCount(*row) for row in connection.execute(sql, values)]

    def with_labels(
        self, known: Sequence[ConceptCount], parameters: Parameters
    ) -> dict[int, Concept]:
        wanted = {**parameters, "concepts": as_json(concept.key for concept in known)}
        labels: dict[int, Counter[str]] = {concept.key: Counter() for concept in known}
        kinds: dict[int, Counter[str]] = {concept.key: Counter() for concept in known}
        with self._database.errors():
            connection = self._database.read()
            for key, label, kind, count in connection.execute(self._sql["writings"], wanted):
                labels[key][label] += count
                kinds[key][kind] += count
        # One without labels has just lost its last memory.
        return {
            concept.key: _concept(concept, labels[concept.key], kinds[concept.key])
            for concept in known
            if labels[concept.key]
        }


def without_time(filter: Filter) -> dict[str, Any]:
    """Drop the filter's time: concepts have none, and statements their own."""
    return {**filter_parameters(filter), "as_of": None}


def _concept(known: ConceptCount, labels: Counter[str], kinds: Counter[str]) -> Concept:
    usual, *others = _by_frequency(labels)
    return Concept(
        name=known.name,
        label=usual,
        aliases=tuple(others[:MAX_ALIASES]),
        kind=_by_frequency(kinds)[0],
        memories=known.held,
    )


def _by_frequency(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda text: (-counts[text], text))


class Statement(msgspec.Struct, frozen=True):
    source: int
    target: int
    relation: str
    weight: float
    valid_from: str
    valid_to: str | None
    recorded_at: str
    evidence: str
    ended_by: str | None

    def edge(self, source: str, target: str) -> GraphEdge:
        times = {
            name: moment_or_none(getattr(self, name))
            for name in ("valid_from", "valid_to", "recorded_at")
        }
        fields = {**msgspec.structs.asdict(self), **times, "source": source, "target": target}
        return GraphEdge(kind="statement", **fields)


def held_statements(
    connection: Connection, concepts: Sequence[int], filter: Filter, moment: str
) -> list[Statement]:
    """Return statements about the concepts that hold at `moment`.

    Unlike the view `held`, only memories visible to the caller end a statement.
    """
    parameters = {**without_time(filter), "concepts": as_json(concepts), "at": moment}
    rows = connection.execute(connection.sql("concepts")["statements"], parameters).fetchall()
    ends = _ends(connection, [row["statement"] for row in rows], filter)
    found = []
    for row in rows:
        valid_to, ended_by = ends.get(row["statement"], (None, None))
        if valid_to is None or valid_to > moment:
            found.append(
                Statement(
                    row["source"], row["target"], row["relation"], row["weight"],
                    row["valid_from"], valid_to, row["recorded_at"], row["evidence"], ended_by,
                )
            )  # fmt: skip
    return found


def _ends(
    connection: Connection, statements: Sequence[int], filter: Filter
) -> dict[int, tuple[str, str | None]]:
    if not statements:
        return {}
    sql = connection.sql("concepts")["ends"].replace("{statements}", ",".join(map(str, statements)))
    first: dict[int, tuple[str, str | None]] = {}
    for statement, ends_at, ended_by in connection.execute(sql, without_time(filter)):
        known = first.get(statement)
        if known is None or _order(ends_at, ended_by) < _order(*known):
            first[statement] = (ends_at, ended_by)
    return first


def _order(ends_at: str, ended_by: str | None) -> tuple[str, bool, str]:
    return ends_at, ended_by is None, ended_by or ""


class NeighbourhoodSearch:
    """A search around a node, ring by ring, so that cycles end."""

    def __init__(self, connection: Connection, concepts: VisibleConcepts, filter: Filter) -> None:
        self._connection = connection
        self._sql = connection.sql("concepts")
        self._concepts = concepts
        self._filter = filter
        self._moment = filter.as_of or now()
        self._visible = filter_parameters(filter, self._moment)
        self._known: dict[int, ConceptCount] = {}

    def survey(self, start: Memory | Concept, depth: int, most: int) -> Neighbourhood:
        first = self._node_of(start)
        distances, whole = self._rings(first, depth, most, sharing=False)
        if not whole:
            distances, _ = self._rings(first, depth, most, sharing=True)
        nodes = self._shown(distances)
        return Neighbourhood(
            start=nodes[first].id,
            depth=depth,
            as_of=moment_or_none(self._filter.as_of),
            nodes=tuple(nodes.values()),
            edges=tuple(self._edges(nodes)),
            truncated=not whole,
        )

    def _rings(
        self, first: Node, depth: int, most: int, sharing: bool
    ) -> tuple[dict[Node, int], bool]:
        """Return distances, and whether these are all nodes.

        With `sharing`, each ring takes half of the remaining room, so that a hub leaves some for
        the next.
        """
        distances: dict[Node, int] = {first: 0}
        ring, whole = [first], True
        for distance in range(1, depth + 1):
            left = most - len(distances)
            room = -(-left // 2) if sharing and distance < depth else left
            found = [node for node in self._next(ring, distances, room) if node not in distances]
            whole = whole and len(found) <= room
            ring = found[:room]
            distances.update((node, distance) for node in ring)
        return distances, whole

    def _node_of(self, start: Memory | Concept) -> Node:
        if isinstance(start, Memory):
            row = self._connection.execute(
                self._connection.sql("memories")["by_id"], {"id": start.id}
            ).fetchone()
            if row is not None:
                return "memory", row["key"]
        else:
            values = {"names": as_json([start.name])}
            row = self._connection.execute(
                self._connection.sql("graph")["concepts_by_name"], values
            ).fetchone()
            self._learn([row["concept"]] if row is not None else [])
            if row is not None and row["concept"] in self._known:
                return "concept", row["concept"]
        raise NotFound("It was removed during the search, so there is nothing to show.")

    def _next(self, ring: Sequence[Node], seen: Iterable[Node], room: int) -> list[Node]:
        memories, concepts = _keys(ring, "memory"), _keys(ring, "concept")
        linked = self._column(self._sql["linked"], memories=memories) if memories else []
        mentioned = self._column(self._sql["concepts_of"], memories=memories) if memories else []
        stated = [end for one in self._statements(concepts) for end in (one.source, one.target)]
        self._learn([*mentioned, *stated])
        rarest = sorted({*mentioned, *stated} & self._known.keys(), key=self._rarity)
        mentioning = self._mentioning(concepts, _keys(seen, "memory"), room)
        found: list[Node] = [("memory", key) for key in linked]
        found += [("concept", key) for key in rarest]
        found += [("memory", key) for key in mentioning]
        return list(dict.fromkeys(found))

    def _mentioning(self, concepts: Sequence[int], seen: Sequence[int], room: int) -> list[int]:
        if not concepts:
            return []
        rarest = sorted(concepts, key=self._rarity)
        # One more than the room shows whether there are more.
        return self._column(self._sql["memories_of"], limit=room + 1, concepts=rarest, seen=seen)

    def _learn(self, concepts: Iterable[int]) -> None:
        new = sorted(set(concepts) - self._known.keys())
        if new:
            self._known.update(
                (one.key, one) for one in self._concepts.select(without_time(self._filter), new)
            )

    def _rarity(self, concept: int) -> tuple[bool, int, str]:
        known = self._known[concept]
        return known.held == 1, known.held, known.name

    def _statements(self, concepts: Sequence[int]) -> list[Statement]:
        return (
            held_statements(self._connection, concepts, self._filter, self._moment)
            if concepts
            else []
        )

    def _shown(self, distances: dict[Node, int]) -> dict[Node, GraphNode]:
        ids = dict(
            tuple(row)
            for row in self._connection.execute(
                self._connection.sql("memories")["ids_of_keys"],
                {"keys": as_json(_keys(distances, "memory"))},
            )
        )
        known = [self._known[key] for key in _keys(distances, "concept")]
        concepts = self._concepts.with_labels(known, without_time(self._filter))
        shown: dict[Node, GraphNode] = {}
        for node, distance in distances.items():
            kind, key = node
            if kind == "memory":
                shown[node] = GraphNode(
                    kind="memory", id=ids[key], label=ids[key], distance=distance
                )
            else:
                shown[node] = _concept_node(concepts[key], distance)
        return shown

    def _edges(self, nodes: dict[Node, GraphNode]) -> Iterable[GraphEdge]:
        memories, concepts = _keys(nodes, "memory"), _keys(nodes, "concept")
        names = {key: nodes["concept", key].id for key in concepts}
        values = {"memories": as_json(memories), "concepts": as_json(concepts)}
        for memory, concept, role in self._connection.execute(
            self._sql["mentions_between"], values
        ):
            yield GraphEdge(
                kind="mention", source=memory, target=names[concept], relation=ROLES[role]
            )
        for source, kind, target in self._connection.execute(self._sql["links_between"], values):
            yield GraphEdge(kind="link", source=source, target=target, relation=kind)
        for statement in self._statements(concepts):
            if statement.source in names and statement.target in names:
                yield statement.edge(names[statement.source], names[statement.target])

    def _column(self, sql: str, limit: int | None = None, **keys: Sequence[int]) -> list[int]:
        values: dict[str, Any] = {name: as_json(given) for name, given in keys.items()}
        return [
            row[0]
            for row in self._connection.execute(sql, {**self._visible, **values, "limit": limit})
        ]


def _keys(nodes: Iterable[Node], wanted: str) -> list[int]:
    return [key for kind, key in nodes if kind == wanted]


def _concept_node(concept: Concept, distance: int) -> GraphNode:
    return GraphNode(
        kind="concept",
        id=concept.name,
        label=concept.label,
        distance=distance,
        concept_kind=concept.kind,
        memories=concept.memories,
    )
