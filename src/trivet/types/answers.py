"""Values of a recall (candidates, rankings, hits, answers, explanations) and of the graph."""

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
    """One memory as ranked by a leg; `passage` is the index of its best passage, if known.

    `estimated`: the leg cannot see it (a sensitive memory has no vector), so other evidence sets
    its score.
    """

    id: str
    score: float
    passage: int | None = None
    estimated: bool = False


class Ranking(Value, frozen=True, kw_only=True):
    """A leg's result: best first, ties broken by id, scores finite and at least `floor`.

    `floor` is the lowest possible score and counts for memories not returned.
    """

    leg: str
    floor: float
    candidates: tuple[Candidate, ...] = ()


class Contribution(Value, frozen=True, kw_only=True):
    """A leg's part in a fused candidate. `rank` is None if the leg did not return it."""

    leg: str
    rank: int | None
    score: float
    normalised: float
    weight: float
    estimated: bool = False


class Fused(Value, frozen=True, kw_only=True):
    """A candidate after fusion: its score from 0 to 1, and each leg's contribution.

    If a reranker read it, `rerank` is its result and `blended` replaces the score.
    """

    id: str
    score: float
    contributions: tuple[Contribution, ...]
    rerank: Contribution | None = None
    blended: float | None = None

    @property
    def standing(self) -> float:
        """The score that decides the rank."""
        return self.score if self.blended is None else self.blended


class PathStep(Value, frozen=True, kw_only=True):
    """A step from the query to a memory: a concept by its usual spelling, or a memory by its id."""

    kind: Literal["concept", "memory"]
    name: str


class Why(Value, frozen=True, kw_only=True):
    """Why a hit has its rank: each leg's part, then the effect of every later step."""

    legs: Annotated[
        Mapping[str, Contribution],
        Meta(description="Each leg's result: the rank there and the score."),
    ]
    matched_words: Annotated[
        tuple[str, ...], Meta(description="The query's words that it contains.")
    ]
    fused: Annotated[float, Meta(description="The fused score of all legs.")]
    exactness: Annotated[
        float,
        Meta(description="Share of the quoted words or identifiers it contains exactly, 0 to 1."),
    ]
    bonus: Annotated[float, Meta(description="What exactness adds to the score.")]
    prior: Annotated[float, Meta(description="The factor for its importance.")]
    rerank: Annotated[
        Contribution | None,
        Meta(
            description="The reranker's result, if it read this hit: rank and raw score among "
            "those it read, deviation from their mean, and weight in `blended`."
        ),
    ] = None
    blended: Annotated[float | None, Meta(description="The score after the reranker.")] = None
    redirected_from: Annotated[
        tuple[str, ...],
        Meta(description="Ids of superseded memories that matched and led to this one."),
    ] = ()
    collapsed: Annotated[
        tuple[str, ...],
        Meta(description="Ids of hits with the same content, folded into this one."),
    ] = ()
    yields_to: Annotated[
        tuple[str, ...],
        Meta(description="Ids of notes that this page of links lists; they rank before it."),
    ] = ()
    path: Annotated[
        tuple[PathStep, ...],
        Meta(description="The graph's path from the query to this memory: concepts and memories."),
    ] = ()
    time: Annotated[
        str | None, Meta(description="Why it matches the time that the query names.")
    ] = None
    time_factor: Annotated[
        float, Meta(description="The factor applied if it does not match that time.")
    ] = 1.0
    older_than: Annotated[
        str | None, Meta(description="A later hit on the same matter that may have replaced it.")
    ] = None
    newer_than: Annotated[
        tuple[str, ...],
        Meta(description="Earlier hits on the same matter, ranked after it for that reason."),
    ] = ()
    conflicts: Annotated[
        tuple[str, ...],
        Meta(description="Conflicting edits that wait for a decision; see `sync conflicts`."),
    ] = ()


class Resolution(Value, frozen=True, kw_only=True):
    """A memory that resolves a hit."""

    id: str
    content: str


class Hit(Memory, frozen=True, kw_only=True):
    """One recalled memory, the same on every surface (docs/hit.md).

    Agents get fewer fields (serve/mcp/result_types.py), under the same names.
    """

    passage: Annotated[str, Meta(description="The part of the content that matched best.")]
    score: Annotated[
        float, Meta(description="0 to 1, comparable only with other candidates of this query.")
    ]
    rank: Annotated[int, Meta(description="Its position in the answer, from 1.")]
    why: Annotated[
        Why,
        Meta(description="Why it has its rank: each leg's result and the effect of later steps."),
    ]
    resolved_by: Annotated[
        tuple[Resolution, ...],
        Meta(description="Memories that resolve it, each with id and content."),
    ] = ()
    relevance: Annotated[
        float, Meta(description="The probability that it is relevant at all, 0 to 1.")
    ] = 0.0
    strength: Annotated[
        Strength, Meta(description="The relevance as a word: strong, possible or weak.")
    ] = "weak"

    @property
    def memory(self) -> Memory:
        """The memory without the fields of this query."""
        return Memory(**{name: getattr(self, name) for name in Memory.__struct_fields__})


class ForeignHit(Value, frozen=True, kw_only=True):
    """A hit of another system, not a memory here. Its text is truncated and untrusted.

    `id` is a shared URI or path, otherwise the system's own id. `rank` counts all hits of the
    answer.
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
    """Whether a leg answered, its number of candidates and, if it failed, why."""

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
    """The answer to a recall: hits, health of the parts involved, time per stage.

    `nothing_relevant`: even the best candidate, at `best_relevance`, is below `relevance_at_least`
    or, by default, the calibrated threshold; then the best candidates are returned all the same.
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
    foreign: tuple[ForeignHit, ...] = ()  # hits of other systems in a federated recall
    asked: tuple[str, ...] = ()  # the query's parts or rewrites also tried for an unsure answer

    def _repr_html_(self) -> str | None:
        return render_in_notebook("answer_html", self)


class WhyNot(Value, frozen=True, kw_only=True):
    """Why a query did or did not return a memory, found by running that query."""

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
    """A thing that memories mention; `label` is the most frequent spelling."""

    name: str
    label: str
    aliases: tuple[str, ...] = ()
    kind: str
    memories: int


class ConceptPage(Value, frozen=True, kw_only=True):
    """One page of concepts and the total count; `not_in_graph` memories are not read yet."""

    concepts: tuple[Concept, ...]
    total: int
    offset: int
    not_in_graph: int = 0


class GraphNode(Value, frozen=True, kw_only=True):
    """A memory by its id, or a concept by its name with its number of memories.

    `distance` is the number of steps from the start node.
    """

    kind: Literal["memory", "concept"]
    id: str
    label: str
    distance: int
    concept_kind: str | None = None
    memories: int | None = None
    sensitive: bool = False


class GraphEdge(Value, frozen=True, kw_only=True):
    """A mention (memory to concept), a link between memories, or a statement about two concepts.

    A mention's `relation` is its role. `evidence` is the memory with the statement, `ended_by` the
    one that ended it.
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
    """The surroundings of a memory or concept: the start node first, the others nearest first."""

    start: str
    depth: int
    as_of: datetime | None = None
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    truncated: bool = False
    not_in_graph: int = 0

    def _repr_svg_(self) -> str | None:
        return render_in_notebook("graph_svg", self)
