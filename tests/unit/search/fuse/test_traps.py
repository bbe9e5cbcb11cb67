"""Known ways in which hybrid search goes wrong, each held down by a test."""

from __future__ import annotations

import pytest

from support.rankings import ids, ranking, scores
from trivet.errors import LegFailed
from trivet.search.fuse import fuse, parse_fusion
from trivet.search.fuse.methods import zscore

HUNDRED = {f"m{place:03}": 100.0 - place for place in range(100)}


def test_two_to_one_at_60_makes_the_light_leg_a_tie_breaker_for_62_ranks() -> None:
    heavy, light = ranking("lexical", 0.0, **HUNDRED), ranking("dense", -1.0, light=0.99)
    fused = ids(fuse(parse_fusion("rrf(k=60, lexical=2, dense=1)"), [heavy, light]))
    # The light leg's best, 1/61, meets the heavy leg's rank 62, 2/122, in an exact tie.
    assert fused.index("light") == 61


def test_a_smaller_k_for_the_light_leg_gives_it_a_voice() -> None:
    heavy, light = ranking("lexical", 0.0, **HUNDRED), ranking("dense", -1.0, light=0.99)
    fused = ids(fuse(parse_fusion("rrf(k=60, k.dense=20, lexical=2, dense=1)"), [heavy, light]))
    assert fused[0] == "light"


def test_a_rank_bonus_that_would_swamp_raw_rrf_is_small_on_the_fused_scale() -> None:
    fused = fuse(parse_fusion("rrf"), [ranking("lexical", 0.0, **HUNDRED)])
    first, last = fused[0], fused[-1]
    bonus = 1 / 61
    assert last.contributions[0].normalised + bonus > first.contributions[0].normalised
    assert last.score + bonus < fused[50].score


def test_negative_bm25_of_fts5_is_refused_whatever_floor_it_claims() -> None:
    as_fts5_gives_it = {"best": -5.0, "middle": -3.0, "worst": -1.0}
    with pytest.raises(LegFailed, match="below the declared floor"):
        fuse(parse_fusion("convex"), [ranking("lexical", 0.0, **as_fts5_gives_it)])
    with pytest.raises(LegFailed, match="not sorted best first"):
        fuse(parse_fusion("convex"), [ranking("lexical", -10.0, **as_fts5_gives_it)])


@pytest.mark.parametrize(
    "text", ["rrf", "convex", "convex(norm=zscore)", "convex(norm=spread)", "dbsf", "tm2c2"]
)
def test_scores_clamped_near_zero_on_a_tiny_store_still_rank(text: str) -> None:
    clamped = ranking("lexical", 0.0, a=1.2e-6, b=1.1e-6, c=1.1e-6)
    assert ids(fuse(parse_fusion(text), [clamped])) == ["a", "b", "c"]


def test_dbsf_of_one_hit_is_a_half_however_good_the_hit() -> None:
    weak, strong = ranking("lexical", 0.0, a=0.001), ranking("lexical", 0.0, a=99.0)
    assert (
        scores(fuse(parse_fusion("dbsf"), [weak]))
        == scores(fuse(parse_fusion("dbsf"), [strong]))
        == {"a": 0.5}
    )


@pytest.mark.parametrize("text", ["rsf", "tm2c2"])
def test_scaling_within_one_query_cannot_say_that_nothing_is_relevant(text: str) -> None:
    noise = fuse(parse_fusion(text), [ranking("dense", -1.0, a=0.03, b=0.02)])
    assert noise[0].score == 1.0
    # What can say it travels along: the leg's own score.
    assert noise[0].contributions[0].score == 0.03


def test_a_cosine_floor_does_not_bury_what_only_the_lexical_leg_found() -> None:
    crowd = {f"d{place:02}": 0.5 - place * 0.004 for place in range(50)}
    dense = ranking("dense", -1.0, **crowd)
    floor_in_deviations = (-1.0 - 0.402) / 0.0577
    assert floor_in_deviations < -24 < zscore(dense).missing
    lexical = ranking("lexical", 0.0, only=12.0, d49=3.0, d48=2.0, d47=1.0)
    # With the floor's own -24 it would be the last of all 51.
    fused = ids(fuse(parse_fusion("convex(norm=zscore)"), [lexical, dense]))
    assert fused.index("only") < len(fused) / 2


def test_a_leg_that_is_not_named_weighs_one() -> None:
    legs = [ranking(leg, 0.0, a=1.0) for leg in ("lexical", "dense", "graph")]
    (fused,) = fuse(parse_fusion("convex(lexical=0.5, dense=0.5)"), legs)
    assert {part.leg: part.weight for part in fused.contributions} == {
        "lexical": 0.25,
        "dense": 0.25,
        "graph": 0.5,
    }


def test_dbsf_ties_made_by_clipping_keep_the_order_of_the_leg() -> None:
    crowd = {f"m{place:03}": 0.0 for place in range(200)}
    lexical = ranking("lexical", 0.0, z=1000.0, a=999.0, **crowd)
    fused = fuse(parse_fusion("dbsf"), [lexical])
    assert [fused[0].score, fused[1].score] == [1.0, 1.0]
    assert ids(fused)[:3] == ["z", "a", "m000"]
