"""Each score normalization matches values computed by hand and handles extreme scores."""

from __future__ import annotations

import pytest
from hypothesis import given

from support.rankings import DENSE, LEXICAL, a_ranking, ranking
from trivet.search.fuse.methods import NORMALISERS, dbsf, minmax, spread, tmm, zscore
from trivet.types import Candidate, Ranking


def test_minmax_matches_hand_computed_values() -> None:
    assert minmax(LEXICAL).scores == (1.0, 0.5, 0.0)
    assert minmax(LEXICAL).missing == 0.0


def test_tmm_scales_from_leg_floor() -> None:
    assert tmm(LEXICAL).scores == pytest.approx((1.0, 0.6, 0.2))
    assert tmm(DENSE).scores == pytest.approx((1.0, 1.5 / 1.9))
    assert tmm(DENSE).missing == 0.0


def test_zscore_matches_hand_computed_values() -> None:
    # mean 6, population variance 32 / 3
    assert zscore(LEXICAL).scores == pytest.approx((1.224745, 0.0, -1.224745), abs=1e-6)
    assert zscore(LEXICAL).missing == zscore(LEXICAL).scores[-1]
    assert zscore(DENSE).scores == pytest.approx((1.0, -1.0))


def test_dbsf_matches_hand_computed_values() -> None:
    # mean 6, sample deviation 4: 0..1 spans -6..18, so the floor 0 maps to 0.25
    assert dbsf(LEXICAL).scores == pytest.approx((2 / 3, 0.5, 1 / 3))
    assert dbsf(LEXICAL).missing == pytest.approx(0.25)
    # mean 0.7, sample deviation 0.282843: the floor -1 would map to -0.0017 and is clipped
    assert dbsf(DENSE).scores == pytest.approx((0.617851, 0.382149), abs=1e-6)
    assert dbsf(DENSE).missing == 0.0


def test_dbsf_clips_an_outlier() -> None:
    scores = {f"m{place}": 0.0 for place in range(1, 50)}
    assert dbsf(ranking("lexical", 0.0, first=1000.0, **scores)).scores[0] == 1.0


@pytest.mark.parametrize("hits", [{"a": 7.0}, {"a": 7.0, "b": 7.0, "c": 7.0}, {"a": 0.0}])
@pytest.mark.parametrize(
    ("norm", "present", "missing"),
    [
        ("minmax", 1.0, 0.0),
        ("tmm", 1.0, 0.0),
        ("zscore", 0.0, -1.0),
        ("dbsf", 0.5, 0.0),
        ("spread", 0.0, -1.0),
    ],
)
def test_equal_scores_have_defined_normalization(
    hits: dict[str, float], norm: str, present: float, missing: float
) -> None:
    normalised = NORMALISERS[norm](ranking("lexical", 0.0, **hits))
    assert set(normalised.scores) == {present}
    assert normalised.missing == missing


@pytest.mark.parametrize("norm", [norm for norm in NORMALISERS if norm != "raw"])
@pytest.mark.parametrize("top", [5e-324, 1e-300, 1e300])
def test_extreme_scores_do_not_overflow_or_underflow(norm: str, top: float) -> None:
    normalised = NORMALISERS[norm](ranking("lexical", -1e300, a=top, b=0.0))
    assert normalised.missing <= normalised.scores[1] <= normalised.scores[0] < 2


@pytest.mark.parametrize("norm", NORMALISERS)
@given(ranking=a_ranking("lexical", least=1))
def test_order_kept_and_missing_not_above_present(norm: str, ranking: Ranking) -> None:
    normalised = NORMALISERS[norm](ranking)
    assert list(normalised.scores) == sorted(normalised.scores, reverse=True)
    assert normalised.missing <= normalised.scores[-1]
    assert len(normalised.scores) == len(ranking.candidates)


def test_raw_keeps_leg_scores() -> None:
    normalised = NORMALISERS["raw"](ranking("graph", 0.0, a=0.4, b=0.1))
    assert (normalised.scores, normalised.missing) == ((0.4, 0.1), 0.0)


def test_spread_matches_hand_computed_values() -> None:
    ranking = Ranking(
        leg="lexical",
        floor=0.0,
        candidates=tuple(
            Candidate(id=id, score=score) for id, score in zip("abc", (9, 6, 3), strict=True)
        ),
    )
    assert spread(ranking).scores == pytest.approx((0.5, 0.0, -0.5))
    assert spread(ranking).missing == pytest.approx(-0.5)


def test_spread_shrinks_scores_of_undecided_leg() -> None:
    def ranking(*scores: float) -> Ranking:
        candidates = tuple(
            Candidate(id=str(rank), score=score) for rank, score in enumerate(scores)
        )
        return Ranking(leg="lexical", floor=0.0, candidates=candidates)

    decided, undecided = ranking(20.0, 5.0, 4.0), ranking(10.2, 10.1, 10.0)
    assert spread(decided).scores[0] > 10 * spread(undecided).scores[0] > 0
    assert zscore(undecided).scores[0] > 1  # a z-score hides the small gap
