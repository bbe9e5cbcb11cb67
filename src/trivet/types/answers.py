"""Values of a recall: candidates, rankings, hits, answers and their explanations.

Values of the concept graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from trivet.types.memories import Memory, Value, render_in_notebook

Sort = Literal["relevance", "importance", "recency"]


Rerank = Literal["off", "auto", "fast", "best"]


Strength = Literal["strong", "possible", "weak"]


class Candidate(Value, frozen=True, kw_only=True):
    """One memory as a leg sees it. `passage` is the ordinal of its best passage where the leg knows one.

    `estimated`: the leg cannot see the memory (a sensitive one has no vector), and other evidence stands for its score.
    """

    id: str
    score: float
    passage: int | None = None
    estimated: bool = False


class Ranking(Value, frozen=True, kw_only=True):
    """What a leg returns: best first, ties broken by id, every score finite and at or above `floor`.

    `floor` is the least score that the leg can give; a memory that it did not return counts as that.
    """

    leg: str
    floor: float
    candidates: tuple[Candidate, ...] = ()


class Contribution(Value, frozen=True, kw_only=True):
    """What one leg gave to one fused candidate. `rank` is None where the leg did not return it."""

    leg: str
    rank: int | None
    score: float
    normalised: float
    weight: float
    estimated: bool = False


class Fused(Value, frozen=True, kw_only=True):
    """A candidate after fusion: its score on 0..1, and each leg's part in it.

    If a reranker read it, `rerank` is its result and `blended` the score that counts from then on.
    """

    id: str
    score: float
    contributions: tuple[Contribution, ...]
    rerank: Contribution | None = None
    blended: float | None = None

    @property
    def standing(self) -> float:
        """The score that decides its rank."""
        return self.score if self.blended is None else self.blended


class PathStep(Value, frozen=True, kw_only=True):
    """A step on the path from the query to a memory: a concept by its usual writing, or a memory by its id."""

    kind: Literal["concept", "memory"]
    name: str


class Why(Value, frozen=True, kw_only=True):
    """Why a hit has its rank: each leg's part, then what every later step did to the score."""

    legs: Annotated[
        Mapping[str, Contribution],
        Meta(description="What each leg found: its rank there and its score."),
    ]
    matched_words: Annotated[
        tuple[str, ...], Meta(description="The words of the query that it holds.")
    ]
    fused: Annotated[float, Meta(description="The score of all legs together.")]
    exactness: Annotated[
        float,
        Meta(description="How much of the quoted words or identifiers it holds exactly, 0 to 1."),
    ]
    bonus: Annotated[float, Meta(description="What that adds to the score.")]
    prior: Annotated[float, Meta(description="The factor of its importance.")]
    rerank: Annotated[
        Contribution | None,
        Meta(
            description="The reranker's result, if it read it: place and raw score among those it read, the deviation "
            "from their mean, and its weight in `blended`."
        ),
    ] = None
    blended: Annotated[float | None, Meta(description="The score after the reranker.")] = None
    redirected_from: Annotated[
        tuple[str, ...],
        Meta(
            description="Ids of superseded memories that matched well enough to be read and led to this one."
        ),
    ] = ()
    collapsed: Annotated[
        tuple[str, ...],
        Meta(description="Ids of hits that say the same and were folded into this one."),
    ] = ()
    yields_to: Annotated[
        tuple[str, ...],
        Meta(
            description="Ids of notes that this page of links lists, and that stand before it for that."
        ),
    ] = ()
    path: Annotated[
        tuple[PathStep, ...],
        Meta(
            description="How the graph reached it: the query, then these concepts and memories, then this one."
        ),
    ] = ()
    time: Annotated[
        str | None, Meta(description="Why it belongs to the time that the query names.")
    ] = None
    time_factor: Annotated[
        float, Meta(description="The factor of what does not belong to that time.")
    ] = 1.0
    older_than: Annotated[
        str | None, Meta(description="A later hit on the same matter, which may have replaced it.")
    ] = None
    newer_than: Annotated[
        tuple[str, ...],
        Meta(description="Earlier hits on the same matter, before which it stands for that."),
    ] = ()
    conflicts: Annotated[
        tuple[str, ...],
        Meta(
            description="Edits that clashed with it and wait for a decision; `sync conflicts` shows them."
        ),
    ] = ()


class Resolution(Value, frozen=True, kw_only=True):
    """A memory that resolves a hit, attached to it."""

    id: str
    content: str


class Hit(Memory, frozen=True, kw_only=True):
    """One recalled memory: its own fields, and those of the hit. This is its shape on every surface (docs/hit.md).

    Agents are given fewer of the fields (serve/mcp/result_types.py), under the same names.
    """

    passage: Annotated[str, Meta(description="The part of the content that matched best.")]
    score: Annotated[
        float, Meta(description="0 to 1; compares it with the other candidates of this query.")
    ]
    rank: Annotated[int, Meta(description="Its place in the answer, from 1 on.")]
    why: Annotated[
        Why,
        Meta(
            description="Why it has its rank: what each leg found, and what every later step did."
        ),
    ]
    resolved_by: Annotated[
        tuple[Resolution, ...],
        Meta(description="The memories that resolve it, each with id and content."),
    ] = ()
    relevance: Annotated[
        float, Meta(description="How likely it is to be relevant at all, 0 to 1.")
    ] = 0.0
    strength: Annotated[
        Strength, Meta(description="The relevance in a word: strong, possible or weak.")
    ] = "weak"

    @property
    def memory(self) -> Memory:
        """The memory alone, without what this query made of it."""
        return Memory(**{name: getattr(self, name) for name in Memory.__struct_fields__})


class ForeignHit(Value, frozen=True, kw_only=True):
    """A hit of another system that is no memory of this store. Its text is cut to a limit, and is not to be trusted.

    `id` is a URI or a path that systems share, or else the other system's own id. `rank` counts all hits of the
    answer, memories included.
    """

    systems: tuple[str, ...]
    id: str
    text: str
    score: float
    rank: int
    legs: Mapping[str, Contribution]
    title: str | None = None
    line: int | None = None


class LegHealth(Value, frozen=True, kw_only=True):
    """Whether a leg answered, how many candidates it gave, and if not, why not."""

    leg: str
    answered: bool
    candidates: int = 0
    took_ms: float = 0.0
    reason: str | None = None


class Health(Value, frozen=True, kw_only=True):
    """The state of legs, embedder and queues behind an answer, so that no degradation is silent."""

    degraded: bool
    legs: tuple[LegHealth, ...]
    embedder: str | None
    memories: int
    not_embedded: int
    failing_jobs: int
    not_in_graph: int = 0
    last_error: str | None = None
    notes: tuple[str, ...] = ()


class Answer(Value, frozen=True, kw_only=True):
    """The reply to a recall: the hits, the health of what made them, and how long each stage took.

    `nothing_relevant`: even the likeliest candidate, at `best_relevance`, is below `relevance_at_least`, or below the
    calibrated threshold if the caller set none. The best candidates are among the hits all the same, unless the caller
    set one.
    """

    query: str
    hits: tuple[Hit, ...]
    health: Health
    took_ms: float
    stages_ms: Mapping[str, float]
    recipe: str
    considered: int = 0
    truncated: bool = False
    nothing_relevant: bool = False
    best_relevance: float | None = None
    foreign: tuple[ForeignHit, ...] = ()  # hits of other systems, in a federated recall
    asked: tuple[
        str, ...
    ] = ()  # the query's parts or rewrites that were asked too, if the first answer was unsure

    def _repr_html_(self) -> str | None:
        """How a notebook shows it."""
        return render_in_notebook("answer_html", self)


class WhyNot(Value, frozen=True, kw_only=True):
    """Why a memory did or did not come back for a query, found by running that query."""

    query: str
    id: str
    returned: bool
    rank: int | None
    verdict: str
    reasons: tuple[str, ...]
    legs: Mapping[str, Contribution]


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
