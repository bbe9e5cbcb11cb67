"""Federated recall: searches other systems with Trivet's own legs, and fuses all rankings.

If no system answers, this is a plain recall.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

import msgspec

from trivet.analyse import STOP_WORDS, Question, analyse_query
from trivet.contract import Recall
from trivet.errors import InvalidInput
from trivet.memory.answer.decision import Decision, Retrieved
from trivet.memory.answer.other_trivet import OtherTrivet, RecallWithDecision
from trivet.memory.answer.retrieve import effective_recipe, retrieve
from trivet.memory.engine import Engine
from trivet.memory.passages import estimate_tokens
from trivet.search.fuse import Fusion, Options
from trivet.search.legs.registry import leg_names
from trivet.search.recipe import Recipe
from trivet.search.relevance import importance_prior
from trivet.search.systems.federation import SystemAnswer
from trivet.search.systems.messages import Reply, SystemHit, SystemQuery
from trivet.secrets.masking import without_placeholders
from trivet.settings.systems import ExternalSystem
from trivet.store.records import SourcedMemory
from trivet.types import Answer, Candidate, Filter, ForeignHit, Fused, Hit, Ranking

if TYPE_CHECKING:
    from trivet.store import Store


# The importance of a memory stored without one.
ASSUMED_IMPORTANCE = 0.5
# A regular expression of more words would match everything.
MAX_QUERY_WORDS = 32


def recall_federated(
    engine: Engine, request: Recall, recall_with_decision: RecallWithDecision
) -> Answer:
    systems = systems_to_ask(engine)
    recipe = add_system_weights(effective_recipe(engine, request), systems)
    question = analyse_query(engine.guard.without_secrets(request.query))
    gathering = FederatedRetrieval(engine, systems, request, question, recall_with_decision)
    answer, decision = recall_with_decision(
        engine, msgspec.structs.replace(request, recipe=str(recipe)), gathering.retrieve
    )
    return merge_answers(answer, decision, gathering.foreign, request)


def systems_to_ask(engine: Engine) -> dict[str, ExternalSystem]:
    """Return the enabled systems; a server's users get those open to users."""
    declared = {name: system for name, system in engine.systems.declared.items() if system.enabled}
    if engine.caller:
        declared = {name: system for name, system in declared.items() if system.users}
    if not declared:
        raise InvalidInput(
            "federated: this server asks no other systems for its users."
            if engine.caller
            else "federated: the settings declare no other system that is enabled. Add one "
            "as a table "
            "[federation.NAME] to trivet.toml; docs/federation.md shows how."
        )
    return declared


def add_system_weights(recipe: Recipe, systems: dict[str, ExternalSystem]) -> Recipe:
    fusion = recipe.fusion
    weights = {
        name: system.weight for name, system in systems.items() if name not in fusion.weights
    }
    return msgspec.structs.replace(
        recipe, fusion=Fusion(fusion.method, Options({**fusion.options, **weights}))
    )


class FederatedRetrieval:
    """A retrieval that asks the systems when created and collects replies later."""

    def __init__(
        self,
        engine: Engine,
        systems: dict[str, ExternalSystem],
        request: Recall,
        question: Question,
        recall_with_decision: RecallWithDecision,
    ) -> None:
        self._engine = engine
        self._request = request
        self._question = question
        self._started = time.monotonic()
        self._futures: dict[str, Future[Reply]] = engine.systems.start(
            systems,
            system_query(question),
            lambda system: OtherTrivet(engine.settings, system, recall_with_decision),
        )
        self.foreign: dict[str, ForeignCandidate] = {}

    def retrieve(
        self, engine: Engine, question: Question, filter: Filter, recipe: Recipe
    ) -> Retrieved:
        own = retrieve(engine, question, filter, recipe)
        if question.text != self._question.text:
            return own  # a rewrite of the query, which only the own legs search
        with engine.legs.turns.waiting():
            heard = engine.systems.collect(self._futures, self._started)
        found = self._match_replies(heard, own, filter)
        self.foreign = found.foreign
        health = [*own.health, *(one.health for one in heard)]
        rankings = [
            *own.rankings,
            *(_only_quoted_matches(found, own) if own.narrowed else found.rankings),
        ]
        return Retrieved(rankings, health, (*own.notes, *found.notes), own.narrowed)

    def _match_replies(
        self, heard: Sequence[SystemAnswer], own: Retrieved, filter: Filter
    ) -> MatchedHits:
        replies = {one.name: (one.system, one.reply) for one in heard if one.reply is not None}
        return match_hits(self._engine.store, replies, own.rankings, self._request, filter)


def _only_quoted_matches(found: MatchedHits, own: Retrieved) -> list[Ranking]:
    kept = {
        candidate.id for ranking in own.rankings for candidate in ranking.candidates
    } | found.foreign.keys()
    return [
        msgspec.structs.replace(
            ranking, candidates=tuple(one for one in ranking.candidates if one.id in kept)
        )
        for ranking in found.rankings
    ]


def system_query(question: Question) -> SystemQuery:
    """Return the user's words without secrets."""
    text = without_placeholders(question.text)
    words = (word.strip(".,;:!?()[]{}'\"`") for word in text.casefold().split())
    telling = dict.fromkeys(word for word in words if word and word not in STOP_WORDS)
    return SystemQuery(text, tuple(telling)[:MAX_QUERY_WORDS])


def merge_answers(
    answer: Answer, decision: Decision, foreign: dict[str, ForeignCandidate], request: Recall
) -> Answer:
    outside = [
        _foreign_hit(fused, foreign[fused.id], decision.recipe)
        for fused in decision.pool.fused
        if fused.id in foreign
    ]
    outside = [hit for hit in outside if hit.score >= request.minimum_score]
    if decision.time is not None and any(hit.time for hit in decision.hits):
        # The time of foreign hits is unknown.
        factor = 1 - decision.time.weight(decision.recipe.time)
        outside = [
            msgspec.structs.replace(hit, score=round(hit.score * factor, 6)) for hit in outside
        ]
    together: list[Hit | ForeignHit] = [*answer.hits, *outside]
    if request.sort == "relevance":
        together.sort(key=lambda hit: -hit.score)  # stable: of equal scores, memories come first
    kept, cut_short = _within(together[: request.limit], request.token_budget)
    ranked = [msgspec.structs.replace(hit, rank=rank) for rank, hit in enumerate(kept, 1)]
    return msgspec.structs.replace(
        answer,
        hits=tuple(hit for hit in ranked if isinstance(hit, Hit)),
        foreign=tuple(hit for hit in ranked if isinstance(hit, ForeignHit)),
        truncated=answer.truncated or cut_short,
    )


def _foreign_hit(fused: Fused, foreign: ForeignCandidate, recipe: Recipe) -> ForeignHit:
    parts = {part.leg: part for part in fused.contributions}
    return ForeignHit(
        systems=tuple(
            leg for leg, part in parts.items() if part.rank is not None and leg not in leg_names()
        ),
        id=foreign.id,
        text=foreign.system_hit.text,
        title=foreign.system_hit.title,
        line=foreign.system_hit.line,
        score=round(
            min(1.0, fused.standing * importance_prior(ASSUMED_IMPORTANCE, recipe.prior)), 6
        ),
        rank=0,
        legs=parts,
    )


def _within(
    hits: Sequence[Hit | ForeignHit], budget: int | None
) -> tuple[Sequence[Hit | ForeignHit], bool]:
    """Skip hits that are too long, so that a foreign hit displaces no memory."""
    if budget is None:
        return hits, False
    kept: list[Hit | ForeignHit] = []
    left = budget
    for hit in hits:
        tokens = estimate_tokens(hit.content if isinstance(hit, Hit) else hit.text)
        if tokens <= left:
            kept.append(hit)
            left -= tokens
    return kept, len(kept) < len(hits)


class ForeignCandidate(msgspec.Struct, frozen=True):
    id: str
    system_hit: SystemHit


class MatchedHits(msgspec.Struct, frozen=True):
    rankings: list[Ranking]
    foreign: dict[str, ForeignCandidate]
    notes: tuple[str, ...]


def match_hits(
    store: Store,
    replies: Mapping[str, tuple[ExternalSystem, Reply]],
    own: Sequence[Ranking],
    request: Recall,
    filter: Filter,
) -> MatchedHits:
    known = _known(store, replies, filter)
    ranks = _ranks(own)
    foreign: dict[str, ForeignCandidate] = {}
    rankings, notes = [], []
    for name, (system, reply) in replies.items():
        left_out: Counter[str] = Counter()
        best: dict[str, float] = {}
        for hit in reply.hits:
            id = _memory(known.get(hit.id, ()), hit, ranks, left_out) if hit.common else None
            if id is None and not _is_stored(known.get(hit.id, ()), hit):
                id = _add_foreign(name, system, hit, request, foreign, left_out)
            if id is not None:
                best.setdefault(id, hit.score)
        candidates = tuple(Candidate(id=id, score=score) for id, score in best.items())
        rankings.append(Ranking(leg=name, floor=reply.floor, candidates=candidates))
        notes += [f"{name}: {note}" for note in reply.notes]
        notes += [f"{name}: {count} of its hits {why}" for why, count in left_out.items()]
    return MatchedHits(rankings, foreign, tuple(notes))


def _known(
    store: Store, replies: Mapping[str, tuple[ExternalSystem, Reply]], filter: Filter
) -> Mapping[str, tuple[SourcedMemory, ...]]:
    wanted = {hit.id for _, reply in replies.values() for hit in reply.hits if hit.common}
    found: dict[str, list[SourcedMemory]] = {}
    for memory in store.memories.of_sources(sorted(wanted), filter) if wanted else ():
        for name in (memory.id, memory.source):
            if name is not None and name in wanted:
                found.setdefault(name, []).append(memory)
    return {name: tuple(memories) for name, memories in found.items()}


def _ranks(own: Sequence[Ranking]) -> Mapping[str, int]:
    ranks: dict[str, int] = {}
    for ranking in own:
        for place, candidate in enumerate(ranking.candidates):
            ranks[candidate.id] = min(place, ranks.get(candidate.id, place))
    return ranks


def _is_stored(memories: Sequence[SourcedMemory], hit: SystemHit) -> bool:
    """Return whether only the memory made of the hit's source may be shown.

    A forgotten memory counts only if it was sensitive.
    """
    return hit.common and any(memory.sensitive or not memory.deleted for memory in memories)


def _memory(
    memories: Sequence[SourcedMemory],
    hit: SystemHit,
    ranks: Mapping[str, int],
    left_out: Counter[str],
) -> str | None:
    shown = [memory for memory in memories if memory.shown]
    if not shown:
        if _is_stored(memories, hit):
            left_out["left out, since this recall may not show their memories"] += 1
        return None
    last = len(ranks)
    return min(
        shown,
        key=lambda memory: (
            not _holds(memory, hit.line),
            ranks.get(memory.id, last),
            _start(memory),
        ),
    ).id


def _holds(memory: SourcedMemory, line: int | None) -> bool:
    if line is None or memory.start_line is None:
        return False
    return memory.start_line <= line <= (memory.end_line or memory.start_line)


def _start(memory: SourcedMemory) -> tuple[int, str]:
    return (memory.start_line or 0, memory.id)


def _add_foreign(
    name: str,
    system: ExternalSystem,
    hit: SystemHit,
    request: Recall,
    foreign: dict[str, ForeignCandidate],
    left_out: Counter[str],
) -> str | None:
    if not _passes_filters(system, hit, request):
        left_out["left out, because the filters cannot be checked for them"] += 1
        return None
    id = hit.id if hit.common else f"{name}:{hit.id}"
    foreign.setdefault(id, ForeignCandidate(hit.id, hit))
    return id


def _passes_filters(system: ExternalSystem, hit: SystemHit, request: Recall) -> bool:
    """Check a hit's source and its system's scope, all that is known of it."""
    dated = request.created_after or request.created_before or request.as_of
    if request.category or request.tags or request.state or dated:
        return False
    if request.scope is not None and not f"{system.scope}/".startswith(f"{request.scope}/"):
        return False
    if request.source is None:
        return True
    below = request.source.endswith("/") and hit.id.startswith(request.source)
    return hit.common and (below or hit.id == request.source)
