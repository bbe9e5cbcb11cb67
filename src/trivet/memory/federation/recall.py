"""Recall with members: they are asked while our own legs search, and their rankings are fused with ours as legs.

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
from trivet.memory.answer.excerpts import estimate_tokens
from trivet.memory.engine import Engine
from trivet.memory.federation.place import Foreign, Placed, placed
from trivet.memory.federation.trivet_member import OtherTrivet
from trivet.memory.recall import Decision, Retrieved, follow, recipe_of, retrieve
from trivet.search.fuse import Fusion, Options
from trivet.search.fuse.registry import method_named
from trivet.search.prior import importance_prior
from trivet.search.recipe import LEGS, Recipe
from trivet.search.systems.reported_hits import Asked, Reply
from trivet.search.systems.systems import Heard
from trivet.secrets.placeholder import without_placeholders
from trivet.settings.systems import Member
from trivet.types import Answer, Filter, ForeignHit, Fused, Hit, Ranking

# Nobody has said how much a foreign hit matters, so it counts as much as a memory of which nobody has said it either.
USUAL_IMPORTANCE = 0.5
# A longer regular expression than of so many words finds everything.
MOST_WORDS = 32


def recall_federated(engine: Engine, request: Recall) -> Answer:
    members = open_members(engine)
    recipe = with_members(recipe_of(engine, request), members)
    question = analyse_query(engine.guard.without_secrets(request.query))
    gathering = Gathering(engine, members, request, question)
    trail = follow(engine, msgspec.structs.replace(request, recipe=str(recipe)), gathering.retrieve)
    return joined(trail.answer, trail.decision, gathering.foreign, request)


def open_members(engine: Engine) -> dict[str, Member]:
    """Those to be asked. A user of a server has those asked that its settings open to users, and no others."""
    declared = {name: member for name, member in engine.members.declared.items() if member.enabled}
    if engine.caller:
        declared = {name: member for name, member in declared.items() if member.users}
    if not declared:
        raise InvalidInput(
            "federated: this server asks no other systems for its users."
            if engine.caller
            else "federated: the settings declare no other system that is enabled. Add one as a table "
            "[federation.NAME] to trivet.toml; docs/federation.md shows how."
        )
    return declared


def with_members(recipe: Recipe, members: dict[str, Member]) -> Recipe:
    """The recipe with the members' weights beside those of our legs, unless it names them itself."""
    fusion = recipe.fusion
    if method_named(fusion.method).refine is not None:
        return recipe
    weights = {name: member.weight for name, member in members.items() if name not in fusion.weights}
    return msgspec.structs.replace(recipe, fusion=Fusion(fusion.method, Options({**fusion.options, **weights})))


class Gathering:
    """One federated recall: the members are asked when it is made, and heard when our own legs have answered."""

    def __init__(self, engine: Engine, members: dict[str, Member], request: Recall, question: Question) -> None:
        self._engine = engine
        self._request = request
        self._question = question
        self._started = time.monotonic()
        self._futures: dict[str, Future[Reply]] = engine.members.start(
            members, asked_of(question), lambda member: OtherTrivet(engine.settings, member)
        )
        self.foreign: dict[str, Foreign] = {}

    def retrieve(self, engine: Engine, question: Question, filter: Filter, recipe: Recipe) -> Retrieved:
        own = retrieve(engine, question, filter, recipe)
        if question.text != self._question.text:
            return own  # a rewrite of the query, which is asked of our own legs alone
        heard = engine.members.collect(self._futures, self._started)
        found = self._placed(heard, own, filter)
        self.foreign = found.foreign
        health = [*own.health, *(one.health for one in heard)]
        rankings = [*own.rankings, *(_narrowed(found, own) if own.narrowed else found.rankings)]
        return Retrieved(rankings, health, (*own.notes, *found.notes), own.narrowed, own.seeds)

    def _placed(self, heard: Sequence[Heard], own: Retrieved, filter: Filter) -> Placed:
        replies = {one.name: (one.member, one.reply) for one in heard if one.reply is not None}
        return placed(self._engine.store, replies, own.rankings, self._request, filter)


def _narrowed(found: Placed, own: Retrieved) -> list[Ranking]:
    """Where quoted words have left only memories that hold them, a member brings none of the others back."""
    kept = {candidate.id for ranking in own.rankings for candidate in ranking.candidates} | found.foreign.keys()
    return [
        msgspec.structs.replace(ranking, candidates=tuple(one for one in ranking.candidates if one.id in kept))
        for ranking in found.rankings
    ]


def asked_of(question: Question) -> Asked:
    """The user's own words, without secrets; nothing of any memory is told to a member."""
    text = without_placeholders(question.text)
    words = (word.strip(".,;:!?()[]{}'\"`") for word in text.casefold().split())
    telling = dict.fromkeys(word for word in words if word and word not in STOP_WORDS)
    return Asked(text, tuple(telling)[:MOST_WORDS])


def joined(answer: Answer, decision: Decision, foreign: dict[str, Foreign], request: Recall) -> Answer:
    """Memories and foreign hits in one order, within the limits that hold for all of them together."""
    outside = [
        _foreign_hit(fused, foreign[fused.id], decision.recipe) for fused in decision.fused if fused.id in foreign
    ]
    outside = [hit for hit in outside if hit.score >= request.minimum_score]
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
        systems=tuple(leg for leg, part in parts.items() if part.rank is not None and leg not in LEGS),
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
