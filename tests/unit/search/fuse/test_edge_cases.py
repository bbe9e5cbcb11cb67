"""Every fusion method handles edge cases by the same policy."""

from __future__ import annotations

import math

import pytest

from support.rankings import DENSE, LEXICAL, METHODS, ids, ranking
from trivet.errors import InvalidInput, LegFailed
from trivet.search.fuse import check, fuse, parse_fusion
from trivet.types import Candidate, Ranking

EMPTY = Ranking(leg="graph", floor=0.0)


@pytest.mark.parametrize("text", METHODS)
def test_empty_input_fuses_to_nothing(text: str) -> None:
    assert fuse(parse_fusion(text), []) == ()
    assert fuse(parse_fusion(text), [EMPTY]) == ()


@pytest.mark.parametrize("text", METHODS)
def test_empty_leg_is_ignored(text: str) -> None:
    fusion = parse_fusion(text)
    assert fuse(fusion, [LEXICAL, EMPTY, DENSE]) == fuse(fusion, [LEXICAL, DENSE])


@pytest.mark.parametrize("text", ["rrf(dense=0)", "convex(dense=0)", "rsf(dense=0)"])
def test_zero_weight_drops_leg_and_its_memories(text: str) -> None:
    fused = fuse(parse_fusion(text), [LEXICAL, DENSE])
    assert ids(fused) == ["a", "b", "c"]
    assert [part.leg for part in fused[0].contributions] == ["lexical"]


def test_all_zero_weights_are_rejected() -> None:
    with pytest.raises(InvalidInput, match="every leg has the weight 0"):
        fuse(parse_fusion("convex(lexical=0, dense=0)"), [LEXICAL, DENSE])


def test_empty_leg_does_not_invalidate_weights() -> None:
    silent = Ranking(leg="lexical", floor=0.0)
    assert fuse(parse_fusion("convex(dense=0)"), [silent, DENSE]) == ()


@pytest.mark.parametrize("text", METHODS)
def test_single_memory_in_single_leg(text: str) -> None:
    (only,) = fuse(parse_fusion(text), [ranking("lexical", 0.0, a=3.0)])
    by_saturation = {
        "saturation(half.lexical=4, dense=0.75, lexical=0.25)": 3 / 7,
        "saturation(half.lexical=0.5, without=0, dense=1, lexical=3)": 3 / 3.5,
    }
    assert only.score == by_saturation.get(text, 0.5 if "dbsf" in text else 1.0)


def test_ties_break_by_best_rank_then_id() -> None:
    left = ranking("lexical", 0.0, z=9.0, b=5.0, y=5.0)
    right = ranking("dense", 0.0, x=9.0, a=5.0)
    fused = fuse(parse_fusion("rrf"), [left, right])
    assert ids(fused) == ["x", "z", "a", "b", "y"]


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        (ranking("dense", -1.0, a=math.nan), "'a' has the score nan"),
        (ranking("dense", -1.0, a=0.5, b=math.nan), "'b' has the score nan"),
        (ranking("dense", -1.0, a=math.inf), "'a' has the score inf"),
        (ranking("dense", -1.0, a=0.5, b=-math.inf), "'b' has the score -inf"),
        (ranking("dense", -1.0, a=1e301), "out of range"),
        (
            ranking("dense", -1.0, a=0.5, b=-1.5),
            "'b' has the score -1.5, below the declared floor -1.0",
        ),
        (ranking("dense", -1.0, a=0.5, b=0.6), "'b' has the score 0.6, above the one before it"),
        (ranking("dense", math.nan, a=0.5), "floor nan"),
        (ranking("dense", -math.inf), "floor -inf"),
        (
            Ranking(
                leg="dense",
                floor=0.0,
                candidates=(Candidate(id="a", score=1.0), Candidate(id="a", score=1.0)),
            ),
            "'a' was returned twice",
        ),
    ],
)
@pytest.mark.parametrize("text", ["rrf", "convex", "convex(dense=0)"])
def test_invalid_ranking_raises_leg_failed(broken: Ranking, expected: str, text: str) -> None:
    with pytest.raises(LegFailed) as caught:
        fuse(parse_fusion(text), [LEXICAL, broken])
    assert "leg 'dense'" in str(caught.value)
    assert expected in str(caught.value)
    with pytest.raises(LegFailed):
        check(broken)


def test_duplicate_leg_name_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="two rankings have the leg name 'lexical'"):
        fuse(parse_fusion("rrf"), [LEXICAL, ranking("lexical", 0.0, x=1.0)])


def test_parameter_is_not_weight_of_leg_with_same_name() -> None:
    fused = fuse(parse_fusion("rrf(k=60)"), [LEXICAL, ranking("k", 0.0, x=1.0)])
    assert [part.weight for part in fused[0].contributions] == [0.5, 0.5]
