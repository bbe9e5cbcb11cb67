"""Reads the candidates that can still make the answer and puts bonus and prior on their scores."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.analyse import Question
from trivet.prior import exactness, importance_prior, with_bonus
from trivet.recipe import Recipe
from trivet.store.base import Store
from trivet.types import Fused, Memory, Value

# Redirects, duplicates and caps use hits up, so more than `limit` are read.
SPARE = 3


class Weighed(Value, frozen=True, kw_only=True):
    fused: Fused
    memory: Memory
    exactness: float
    bonus: float
    prior: float
    score: float
    redirected_from: tuple[str, ...] = ()
    collapsed: tuple[str, ...] = ()


def weigh(store: Store, question: Question, fused: Sequence[Fused], recipe: Recipe, limit: int) -> tuple[Weighed, ...]:
    candidates = _within_reach(fused, recipe, limit)
    memories = store.memories.get_many([candidate.id for candidate in candidates])
    weighed = [
        _weighed(question, candidate, memories[candidate.id], recipe)
        for candidate in candidates
        if candidate.id in memories  # gone since the legs looked
    ]
    # sorted() is stable, so equal scores keep the order of the fusion.
    return tuple(sorted(weighed, key=lambda hit: -hit.score))


def _within_reach(fused: Sequence[Fused], recipe: Recipe, limit: int) -> Sequence[Fused]:
    """Everything that full bonus and full importance could lift over the last hit with none of either."""
    if len(fused) <= limit * SPARE:
        return fused
    threshold = fused[limit - 1].score * (1 - recipe.prior) - recipe.bonus
    return [hit for rank, hit in enumerate(fused) if rank < limit * SPARE or hit.score >= threshold]


def _could_be_exact(fused: Fused) -> bool:
    """What holds the query literally is among the best the lexical leg found; where it did not run, all could."""
    return all(part.rank is not None for part in fused.contributions if part.leg == "lexical")


def _weighed(question: Question, fused: Fused, memory: Memory, recipe: Recipe) -> Weighed:
    exact = exactness(question, memory) if recipe.bonus and _could_be_exact(fused) else 0.0
    lifted = with_bonus(fused.score, exact, recipe.bonus)
    prior = importance_prior(memory.importance, recipe.prior)
    return Weighed(
        fused=fused,
        memory=memory,
        exactness=exact,
        bonus=lifted - fused.score,
        prior=prior,
        score=lifted * prior,
    )
