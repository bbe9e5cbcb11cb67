"""Values of the concept graph."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from trivet.types.memories import Value, render_in_notebook

ConceptKind = Literal["name", "title", "tag", "quoted", "identifier", "path", "code", "url", "date"]


ConceptSort = Literal["memories", "name"]


class Concept(Value, frozen=True, kw_only=True):
    """Something that memories mention. `name` is common to all its writings, `label` the most frequent writing."""

    name: str
    label: str
    aliases: tuple[str, ...] = ()
    kind: str
    memories: int


class ConceptPage(Value, frozen=True, kw_only=True):
    """One page of the concepts and the total behind it; `not_in_graph` memories still wait to be read."""

    concepts: tuple[Concept, ...]
    total: int
    offset: int
    not_in_graph: int = 0


class GraphNode(Value, frozen=True, kw_only=True):
    """A memory by its id, or a concept by its name with the number of memories that mention it.

    `distance` is the number of steps from where the neighbourhood starts.
    """

    kind: Literal["memory", "concept"]
    id: str
    label: str
    distance: int
    concept_kind: str | None = None
    memories: int | None = None
    sensitive: bool = False


class GraphEdge(Value, frozen=True, kw_only=True):
    """A mention (memory to concept, `relation` is its role), a link between memories, or a statement on two concepts.

    A statement says from when to when it holds, since when it is known, which memory says it and which one ended it.
    """

    kind: Literal["mention", "link", "statement"]
    source: str
    target: str
    relation: str
    weight: float = 1.0
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    recorded_at: datetime | None = None
    evidence: str | None = None
    ended_by: str | None = None


class Neighbourhood(Value, frozen=True, kw_only=True):
    """The surroundings of a memory or a concept. The first node is the start; the others come nearest first."""

    start: str
    depth: int
    as_of: datetime | None = None
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    truncated: bool = False
    not_in_graph: int = 0

    def _repr_svg_(self) -> str | None:
        """How a notebook shows it."""
        return render_in_notebook("graph_svg", self)
