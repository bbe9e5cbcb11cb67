"""Invariants of every fusion, for any rankings."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.rankings import METHODS, a_ranking, fusions, ids, some_rankings, whole_score
from trivet.search.fuse import Fusion, fuse, parse_fusion
from trivet.types import Candidate, Fused, Ranking


@given(fusions, some_rankings(), st.randoms())
def test_order_of_legs_does_not_matter(
    fusion: Fusion, rankings: list[Ranking], random: Random
) -> None:
    shuffled = random.sample(rankings, len(rankings))
    assert fuse(fusion, shuffled) == fuse(fusion, rankings)


@pytest.mark.parametrize("text", METHODS)
@given(ranking=a_ranking("lexical"))
def test_single_leg_keeps_its_order(text: str, ranking: Ranking) -> None:
    fused = fuse(parse_fusion(text), [ranking, Ranking(leg="dense", floor=-1.0)])
    assert ids(fused) == [candidate.id for candidate in ranking.candidates]


@given(fusions, some_rankings())
def test_scores_are_finite_on_0_to_1_and_sorted(fusion: Fusion, rankings: list[Ranking]) -> None:
    fused = fuse(fusion, rankings)
    assert all(math.isfinite(one.score) and 0.0 <= one.score <= 1.0 for one in fused)
    assert list(fused) == sorted(fused, key=lambda one: (-one.score, best_rank(one), one.id))


@given(fusions, some_rankings())
def test_every_memory_of_any_leg_appears_once(fusion: Fusion, rankings: list[Ranking]) -> None:
    found = [candidate.id for ranking in rankings for candidate in ranking.candidates]
    assert sorted(ids(fuse(fusion, rankings))) == sorted(set(found))


@given(fusions, some_rankings())
def test_contributions_match_the_legs(fusion: Fusion, rankings: list[Ranking]) -> None:
    said = {
        (ranking.leg, candidate.id): (rank, candidate.score)
        for ranking in rankings
        for rank, candidate in enumerate(ranking.candidates, 1)
    }
    floors = {ranking.leg: ranking.floor for ranking in rankings}
    for fused in fuse(fusion, rankings):
        assert math.isclose(sum(part.weight for part in fused.contributions), 1.0)
        for part in fused.contributions:
            assert (part.rank, part.score) == said.get(
                (part.leg, fused.id), (None, floors[part.leg])
            )


@given(fusions, some_rankings())
def test_empty_leg_changes_nothing(fusion: Fusion, rankings: list[Ranking]) -> None:
    empty = Ranking(leg="another", floor=-5.0)
    assert fuse(fusion, [empty, *rankings]) == fuse(fusion, rankings)


@pytest.mark.parametrize("norm", ["minmax", "zscore", "dbsf", "tmm", "spread"])
@given(
    rankings=some_rankings(whole_score), scale=st.integers(1, 1000), shift=st.integers(-1000, 1000)
)
def test_unit_and_origin_of_a_leg_do_not_matter(
    norm: str, rankings: list[Ranking], scale: int, shift: int
) -> None:
    # Whole numbers keep the transformation exact.
    fusion = parse_fusion(f"convex(norm={norm}, dense=2)")
    moved = [transformed(rankings[0], scale, shift), *rankings[1:]]
    assert [(one.id, one.score) for one in fuse(fusion, moved)] == [
        (one.id, one.score) for one in fuse(fusion, rankings)
    ]


@given(fusions, some_rankings())
def test_better_in_every_leg_is_never_below(fusion: Fusion, rankings: list[Ranking]) -> None:
    fused = fuse(fusion, rankings)
    for place, above in enumerate(fused):
        assert not any(dominates(below, above) for below in fused[place + 1 :])


def best_rank(fused: Fused) -> int:
    return min(part.rank for part in fused.contributions if part.rank is not None)


def dominates(one: Fused, other: Fused) -> bool:
    ranks = [
        (left.rank or math.inf, right.rank or math.inf)
        for left, right in zip(one.contributions, other.contributions, strict=True)
    ]
    return all(left < right or left == right == math.inf for left, right in ranks)


def transformed(ranking: Ranking, scale: int, shift: int) -> Ranking:
    return Ranking(
        leg=ranking.leg,
        floor=ranking.floor * scale + shift,
        candidates=tuple(
            Candidate(id=one.id, score=one.score * scale + shift) for one in ranking.candidates
        ),
    )
