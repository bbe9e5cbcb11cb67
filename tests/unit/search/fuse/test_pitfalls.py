"""Regression tests for known hybrid search pitfalls."""

from __future__ import annotations

import pytest

from support.rankings import ids, ranking, scores
from trivet.errors import LegFailed
from trivet.search.fuse import fuse, parse_fusion
from trivet.search.fuse.methods import zscore

HUNDRED = {f"m{place:03}": 100.0 - place for place in range(100)}


def test_light_rrf_leg_trails_61_heavy_ranks() -> None:
    heavy, light = ranking("lexical", 0.0, **HUNDRED), ranking("dense", -1.0, light=0.99)
    fused = ids(fuse(parse_fusion("rrf(k=60, lexical=2, dense=1)"), [heavy, light]))
    # The light leg's best score, 1/61, ties exactly with rank 62 of the heavy leg, 2/122.
    assert fused.index("light") == 61


def test_smaller_k_lifts_light_rrf_leg() -> None:
    heavy, light = ranking("lexical", 0.0, **HUNDRED), ranking("dense", -1.0, light=0.99)
    fused = ids(fuse(parse_fusion("rrf(k=60, k.dense=20, lexical=2, dense=1)"), [heavy, light]))
    assert fused[0] == "light"


def test_rank_bonus_is_small_on_fused_scale() -> None:
    fused = fuse(parse_fusion("rrf"), [ranking("lexical", 0.0, **HUNDRED)])
    first, last = fused[0], fused[-1]
    bonus = 1 / 61
    assert last.contributions[0].normalised + bonus > first.contributions[0].normalised
    assert last.score + bonus < fused[50].score


def test_negative_fts5_bm25_is_rejected() -> None:
    fts5_scores = {"best": -5.0, "middle": -3.0, "worst": -1.0}
    with pytest.raises(LegFailed, match="below the declared floor"):
        fuse(parse_fusion("convex"), [ranking("lexical", 0.0, **fts5_scores)])
    with pytest.raises(LegFailed, match="the ranking is not sorted"):
        fuse(parse_fusion("convex"), [ranking("lexical", -10.0, **fts5_scores)])


@pytest.mark.parametrize(
    "text", ["rrf", "convex", "convex(norm=zscore)", "convex(norm=spread)", "dbsf", "tm2c2"]
)
def test_near_zero_scores_still_rank(text: str) -> None:
    clamped = ranking("lexical", 0.0, a=1.2e-6, b=1.1e-6, c=1.1e-6)
    assert ids(fuse(parse_fusion(text), [clamped])) == ["a", "b", "c"]


def test_dbsf_scores_single_hit_one_half() -> None:
    weak, strong = ranking("lexical", 0.0, a=0.001), ranking("lexical", 0.0, a=99.0)
    assert (
        scores(fuse(parse_fusion("dbsf"), [weak]))
        == scores(fuse(parse_fusion("dbsf"), [strong]))
        == {"a": 0.5}
    )


@pytest.mark.parametrize("text", ["rsf", "tm2c2"])
def test_per_query_scaling_hides_irrelevance(text: str) -> None:
    noise = fuse(parse_fusion(text), [ranking("dense", -1.0, a=0.03, b=0.02)])
    assert noise[0].score == 1.0
    # The leg's own score is kept, and it can show that nothing is relevant.
    assert noise[0].contributions[0].score == 0.03


def test_cosine_floor_does_not_bury_lexical_only_hit() -> None:
    crowd = {f"d{place:02}": 0.5 - place * 0.004 for place in range(50)}
    dense = ranking("dense", -1.0, **crowd)
    floor_in_deviations = (-1.0 - 0.402) / 0.0577
    assert floor_in_deviations < -24 < zscore(dense).missing
    lexical = ranking("lexical", 0.0, only=12.0, d49=3.0, d48=2.0, d47=1.0)
    # With the floor's own -24 it would be last of all 51.
    fused = ids(fuse(parse_fusion("convex(norm=zscore)"), [lexical, dense]))
    assert fused.index("only") < len(fused) / 2


def test_unnamed_leg_has_weight_one() -> None:
    legs = [ranking(leg, 0.0, a=1.0) for leg in ("lexical", "dense", "graph")]
    (fused,) = fuse(parse_fusion("convex(lexical=0.5, dense=0.5)"), legs)
    assert {part.leg: part.weight for part in fused.contributions} == {
        "lexical": 0.25,
        "dense": 0.25,
        "graph": 0.5,
    }


def test_clipped_dbsf_ties_keep_leg_order() -> None:
    crowd = {f"m{place:03}": 0.0 for place in range(200)}
    lexical = ranking("lexical", 0.0, z=1000.0, a=999.0, **crowd)
    fused = fuse(parse_fusion("dbsf"), [lexical])
    assert [fused[0].score, fused[1].score] == [1.0, 1.0]
    assert ids(fused)[:3] == ["z", "a", "m000"]
