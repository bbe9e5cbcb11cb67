"""What lies around a memory or a concept: found ring by ring, so that circles end where they began."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from trivet.clock import now
from trivet.errors import NotFound
from trivet.graph.mentions import ROLES
from trivet.store.relational.database import Connection
from trivet.store.relational.held_statements import Statement, held_statements
from trivet.store.relational.known_concepts import Known, KnownConcepts, timeless
from trivet.store.relational.rows import as_json, filter_parameters
from trivet.types import Concept, Filter, GraphEdge, GraphNode, Memory, Neighbourhood

Node = tuple[Literal["memory", "concept"], int]


class Surveyor:
    """One survey. Memories are those the filter shows at its time; statements those that hold then."""

    def __init__(self, connection: Connection, concepts: KnownConcepts, filter: Filter) -> None:
        self._connection = connection
        self._concepts = concepts
        self._filter = filter
        self._moment = filter.as_of or now()
        self._visible = filter_parameters(filter, self._moment)
        self._known: dict[int, Known] = {}

    def survey(self, start: Memory | Concept, depth: int, most: int) -> Neighbourhood:
        first = self._node_of(start)
        distances, whole = self._rings(first, depth, most, sharing=False)
        if not whole:
            distances, _ = self._rings(first, depth, most, sharing=True)
        nodes = self._shown(distances)
        return Neighbourhood(
            start=nodes[first].id,
            depth=depth,
            as_of=self._filter.as_of,
            nodes=tuple(nodes.values()),
            edges=tuple(self._edges(nodes)),
            truncated=not whole,
        )

    def _rings(self, first: Node, depth: int, most: int, sharing: bool) -> tuple[dict[Node, int], bool]:
        """The distance of every node, and whether these are all.

        When they are not, each ring but the last takes half of the room that is left, so that the ones beyond a hub
        are not crowded out by it.
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
            row = self._connection.execute(self._connection.sql("memories")["by_id"], {"id": start.id}).fetchone()
            if row is not None:
                return "memory", row["key"]
        else:
            values = {"names": as_json([start.name])}
            row = self._connection.execute(self._connection.sql("graph")["concepts_by_name"], values).fetchone()
            self._learn([row["concept"]] if row is not None else [])
            if row is not None and row["concept"] in self._known:
                return "concept", row["concept"]
        raise NotFound("It was removed while it was looked at. Nothing of it is left to show.")

    def _next(self, ring: Sequence[Node], seen: Iterable[Node], room: int) -> list[Node]:
        """What the ring leads to, the most telling first: links and rare concepts before what hubs lead to."""
        memories, concepts = _keys(ring, "memory"), _keys(ring, "concept")
        linked = self._column(self._connection.sql.within("concepts", "linked"), memories=memories) if memories else []
        mentioned = self._column(self._connection.sql("concepts")["concepts_of"], memories=memories) if memories else []
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
        # One more than there is room for tells that there are more.
        return self._column(
            self._connection.sql.within("concepts", "memories_of"), limit=room + 1, concepts=rarest, seen=seen
        )

    def _learn(self, concepts: Iterable[int]) -> None:
        new = sorted(set(concepts) - self._known.keys())
        if new:
            self._known.update((one.key, one) for one in self._concepts.select(timeless(self._filter), new))

    def _rarity(self, concept: int) -> tuple[bool, int, str]:
        """Rarest first; those that lead nowhere else come last."""
        known = self._known[concept]
        return known.held == 1, known.held, known.name

    def _statements(self, concepts: Sequence[int]) -> list[Statement]:
        return held_statements(self._connection, concepts, self._filter, self._moment) if concepts else []

    def _shown(self, distances: dict[Node, int]) -> dict[Node, GraphNode]:
        ids = dict(
            tuple(row)
            for row in self._connection.execute(
                self._connection.sql("memories")["ids_of_keys"], {"keys": as_json(_keys(distances, "memory"))}
            )
        )
        known = [self._known[key] for key in _keys(distances, "concept")]
        concepts = self._concepts.spelled_out(known, timeless(self._filter))
        shown: dict[Node, GraphNode] = {}
        for node, distance in distances.items():
            kind, key = node
            if kind == "memory":
                shown[node] = GraphNode(kind="memory", id=ids[key], label=ids[key], distance=distance)
            else:
                shown[node] = _concept_node(concepts[key], distance)
        return shown

    def _edges(self, nodes: dict[Node, GraphNode]) -> Iterable[GraphEdge]:
        memories, concepts = _keys(nodes, "memory"), _keys(nodes, "concept")
        names = {key: nodes["concept", key].id for key in concepts}
        values = {"memories": as_json(memories), "concepts": as_json(concepts)}
        for memory, concept, role in self._connection.execute(
            self._connection.sql("concepts")["mentions_between"], values
        ):
            yield GraphEdge(kind="mention", source=memory, target=names[concept], relation=ROLES[role])
        for source, kind, target in self._connection.execute(self._connection.sql("concepts")["links_between"], values):
            yield GraphEdge(kind="link", source=source, target=target, relation=kind)
        for statement in self._statements(concepts):
            if statement.source in names and statement.target in names:
                yield statement.edge(names[statement.source], names[statement.target])

    def _column(self, sql: str, limit: int | None = None, **keys: Sequence[int]) -> list[int]:
        values: dict[str, Any] = {name: as_json(given) for name, given in keys.items()}
        return [row[0] for row in self._connection.execute(sql, {**self._visible, **values, "limit": limit})]


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
