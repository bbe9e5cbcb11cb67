"""Recall with other systems: they are asked while our own legs search, and their rankings are fused like those of legs.

Where none of them answers, the answer is what a plain recall would have given.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future

import msgspec

from trivet.analyse import STOP_WORDS, Question, analyse_query
from trivet.contract import Recall
from trivet.errors import InvalidInput
from trivet.memory.answer.decision import Decision, Retrieved
from trivet.memory.engine import Engine
from trivet.memory.federation.other_trivet import OtherTrivet
from trivet.memory.federation.place import Foreign, Placed, placed
from trivet.memory.passages import estimate_tokens
from trivet.memory.recall import follow, recipe_of, retrieve
from trivet.search.fuse import Fusion, Options
from trivet.search.legs.registry import leg_names
from trivet.search.prior import importance_prior
from trivet.search.recipe import Recipe
from trivet.search.systems.reply import Reply, SystemQuery
from trivet.search.systems.systems import SystemAnswer
from trivet.secrets.placeholder import without_placeholders
from trivet.settings.systems import OtherSystem
from trivet.types import Answer, Filter, ForeignHit, Fused, Hit, Ranking

# How much a foreign hit matters is not known, so it counts as much as a memory stored without an importance.
USUAL_IMPORTANCE = 0.5
# A longer regular expression than of so many words finds everything.
MOST_WORDS = 32


def recall_federated(engine: Engine, request: Recall) -> Answer:
    systems = systems_to_ask(engine)
    recipe = with_systems(recipe_of(engine, request), systems)
    question = analyse_query(engine.guard.without_secrets(request.query))
    gathering = Gathering(engine, systems, request, question)
    answer, decision = follow(engine, msgspec.structs.replace(request, recipe=str(recipe)), gathering.retrieve)
    return joined(answer, decision, gathering.foreign, request)


def systems_to_ask(engine: Engine) -> dict[str, OtherSystem]:
    """Those to be asked. A user of a server has those asked that its settings open to users, and no others."""
    declared = {name: system for name, system in engine.systems.declared.items() if system.enabled}
    if engine.caller:
        declared = {name: system for name, system in declared.items() if system.users}
    if not declared:
        raise InvalidInput(
            "federated: this server asks no other systems for its users."
            if engine.caller
            else "federated: the settings declare no other system that is enabled. Add one as a table "
            "[federation.NAME] to trivet.toml; docs/federation.md shows how."
        )
    return declared


def with_systems(recipe: Recipe, systems: dict[str, OtherSystem]) -> Recipe:
    """The recipe with the systems' weights beside those of our legs, unless it names them itself."""
    fusion = recipe.fusion
    weights = {name: system.weight for name, system in systems.items() if name not in fusion.weights}
    return msgspec.structs.replace(recipe, fusion=Fusion(fusion.method, Options({**fusion.options, **weights})))


class Gathering:
    """One federated recall: the systems are asked when it is made, and heard when our own legs have answered."""

    def __init__(self, engine: Engine, systems: dict[str, OtherSystem], request: Recall, question: Question) -> None:
        self._engine = engine
        self._request = request
        self._question = question
        self._started = time.monotonic()
        self._futures: dict[str, Future[Reply]] = engine.systems.start(
            systems, asked_of(question), lambda system: OtherTrivet(engine.settings, system)
        )
        self.foreign: dict[str, Foreign] = {}

    def retrieve(self, engine: Engine, question: Question, filter: Filter, recipe: Recipe) -> Retrieved:
        own = retrieve(engine, question, filter, recipe)
        if question.text != self._question.text:
            return own  # a rewrite of the query, which is asked of our own legs alone
        with engine.legs.turns.waiting():
            heard = engine.systems.collect(self._futures, self._started)
        found = self._placed(heard, own, filter)
        self.foreign = found.foreign
        health = [*own.health, *(one.health for one in heard)]
        rankings = [*own.rankings, *(_narrowed(found, own) if own.narrowed else found.rankings)]
        return Retrieved(rankings, health, (*own.notes, *found.notes), own.narrowed)

    def _placed(self, heard: Sequence[SystemAnswer], own: Retrieved, filter: Filter) -> Placed:
        replies = {one.name: (one.system, one.reply) for one in heard if one.reply is not None}
        return placed(self._engine.store, replies, own.rankings, self._request, filter)


def _narrowed(found: Placed, own: Retrieved) -> list[Ranking]:
    """Where quoted words have left only memories that hold them, a system brings none of the others back."""
    kept = {candidate.id for ranking in own.rankings for candidate in ranking.candidates} | found.foreign.keys()
    return [
        msgspec.structs.replace(ranking, candidates=tuple(one for one in ranking.candidates if one.id in kept))
        for ranking in found.rankings
    ]


def asked_of(question: Question) -> SystemQuery:
    """The user's own words, without secrets; nothing of any memory is told to a system."""
    text = without_placeholders(question.text)
    words = (word.strip(".,;:!?()[]{}'\"`") for word in text.casefold().split())
    telling = dict.fromkeys(word for word in words if word and word not in STOP_WORDS)
    return SystemQuery(text, tuple(telling)[:MOST_WORDS])


def joined(answer: Answer, decision: Decision, foreign: dict[str, Foreign], request: Recall) -> Answer:
    """Memories and foreign hits in one order, within the limits that hold for all of them together."""
    outside = [
        _foreign_hit(fused, foreign[fused.id], decision.recipe) for fused in decision.pool.fused if fused.id in foreign
    ]
    outside = [hit for hit in outside if hit.score >= request.minimum_score]
    if decision.time is not None and any(hit.time for hit in decision.hits):
        factor = 1 - decision.time.weight(decision.recipe.time)  # nobody knows of what time they are
        outside = [msgspec.structs.replace(hit, score=round(hit.score * factor, 6)) for hit in outside]
    together: list[Hit | ForeignHit] = [*answer.hits, *outside]
    if request.sort == "relevance":
        together.sort(key=lambda hit: -hit.score)  # stable: of equals the memory comes first
    kept, cut_short = _within(together[: request.limit], request.token_budget)
    ranked = [msgspec.structs.replace(hit, rank=rank) for rank, hit in enumerate(kept, 1)]
    return msgspec.structs.replace(
        answer,
        hits=tuple(hit for hit in ranked if isinstance(hit, Hit)),
        foreign=tuple(hit for hit in ranked if isinstance(hit, ForeignHit)),
        truncated=answer.truncated or cut_short,
    )


def _foreign_hit(fused: Fused, foreign: Foreign, recipe: Recipe) -> ForeignHit:
    parts = {part.leg: part for part in fused.contributions}
    return ForeignHit(
        systems=tuple(leg for leg, part in parts.items() if part.rank is not None and leg not in leg_names()),
        id=foreign.id,
        text=foreign.told.text,
        title=foreign.told.title,
        line=foreign.told.line,
        score=round(min(1.0, fused.standing * importance_prior(USUAL_IMPORTANCE, recipe.prior)), 6),
        rank=0,
        legs=parts,
    )


def _within(hits: Sequence[Hit | ForeignHit], budget: int | None) -> tuple[Sequence[Hit | ForeignHit], bool]:
    """One that is too long makes room for the next: what somebody else says must not cost the memories behind it."""
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
