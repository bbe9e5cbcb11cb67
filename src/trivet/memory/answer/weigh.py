"""Reads the candidates that can still make the answer and puts bonus and prior on their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trivet.analyse import Question
from trivet.search.prior import exactness, importance_prior, with_bonus
from trivet.search.recipe import Recipe
from trivet.types import Fused, Memory, Value

if TYPE_CHECKING:
    from trivet.store import Store

# Redirects, duplicates and caps use hits up, so some more than `limit` are read.
SPARE = 5


class Weighed(Value, frozen=True, kw_only=True):
    fused: Fused
    memory: Memory
    exactness: float
    bonus: float
    prior: float
    score: float
    relevance: float = 0.0
    redirected_from: tuple[str, ...] = ()
    collapsed: tuple[str, ...] = ()


def weigh(store: Store, question: Question, fused: Sequence[Fused], recipe: Recipe, limit: int) -> tuple[Weighed, ...]:
    """Reads the first candidates, then those of the rest that full importance and bonus could lift among them."""
    first = fused[: limit + SPARE]
    weighed = _read(store, question, first, recipe)
    if len(weighed) > limit:
        last = sorted((hit.score for hit in weighed), reverse=True)[limit - 1]
        rest = [hit for hit in fused[len(first) :] if hit.standing + recipe.bonus >= last]
    else:
        rest = list(fused[len(first) :])
    weighed += _read(store, question, rest, recipe)
    # sorted() is stable, so equal scores keep the order of the fusion.
    return tuple(sorted(weighed, key=lambda hit: -hit.score))


def _read(store: Store, question: Question, candidates: Sequence[Fused], recipe: Recipe) -> list[Weighed]:
    memories = store.memories.get_many([candidate.id for candidate in candidates]) if candidates else {}
    return [
        _weighed(question, candidate, memories[candidate.id], recipe)
        for candidate in candidates
        if candidate.id in memories  # gone since the legs looked
    ]


def _could_be_exact(fused: Fused) -> bool:
    """What holds the query literally is among the best the lexical leg found; where it did not run, all could."""
    return all(part.rank is not None for part in fused.contributions if part.leg == "lexical")


def _weighed(question: Question, fused: Fused, memory: Memory, recipe: Recipe) -> Weighed:
    exact = exactness(question, memory) if recipe.bonus and _could_be_exact(fused) else 0.0
    lifted = with_bonus(fused.standing, exact, recipe.bonus)
    prior = importance_prior(memory.importance, recipe.prior)
    return Weighed(
        fused=fused,
        memory=memory,
        exactness=exact,
        bonus=lifted - fused.standing,
        prior=prior,
        score=lifted * prior,
    )
