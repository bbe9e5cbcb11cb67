"""Each fusion method matches values computed by hand on one small example."""

from __future__ import annotations

import pytest

from support.rankings import DENSE, LEXICAL, ids, ranking, scores
from trivet.search.fuse import fuse, parse_fusion
from trivet.types import Contribution


@pytest.mark.parametrize(
    ("fusion", "expected"),
    [
        # b: 1/62 + 1/61, a: 1/61, d: 1/62, c: 1/63, stretched to 0..1
        ("rrf(k=60)", {"b": 1.0, "a": 0.031258, "d": 0.015376, "c": 0.0}),
        # b: 1/2 + 1, a: 1, d: 1/2, c: 1/3
        ("rrf(k=0)", {"b": 1.0, "a": 4 / 7, "d": 1 / 7, "c": 0.0}),
        # b: 2/2 + 1/10, a: 2/1, d: 1/11, c: 2/3
        ("rrf(k=0, k.dense=9, lexical=2)", {"a": 1.0, "b": 0.52857, "c": 0.30159, "d": 0.0}),
        ("convex(norm=minmax)", {"b": 0.75, "a": 0.5, "d": 0.0, "c": 0.0}),
        ("convex(norm=minmax, lexical=3, dense=1)", {"a": 0.75, "b": 0.625, "d": 0.0, "c": 0.0}),
        ("convex(norm=tmm)", {"b": 0.8, "a": 0.5, "d": 0.394737, "c": 0.1}),
        # b: 0.5, a: 0.112372, c and d: -1.112372, stretched
        ("convex(norm=zscore)", {"b": 1.0, "a": 0.759591, "d": 0.0, "c": 0.0}),
        # b: .75 * .9 + .25 * 6/10, d: .72 * .75 * .5, a: .25 * 10/14, c: .25 * 2/6
        (
            "saturation(half.lexical=4, dense=0.75, lexical=0.25)",
            {"b": 0.825, "d": 0.27, "a": 0.178571, "c": 0.083333},
        ),
        ("convex(norm=dbsf)", {"b": 0.558926, "a": 1 / 3, "d": 0.316074, "c": 1 / 6}),
    ],
)
def test_scores_match_hand_computed_values(fusion: str, expected: dict[str, float]) -> None:
    fused = fuse(parse_fusion(fusion), [LEXICAL, DENSE])
    assert ids(fused) == list(expected)
    assert scores(fused) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "means"),
    [("rsf", "convex(norm=minmax)"), ("dbsf", "convex(norm=dbsf)"), ("tm2c2", "convex(norm=tmm)")],
)
def test_published_method_names_are_aliases(name: str, means: str) -> None:
    assert fuse(parse_fusion(name), [LEXICAL, DENSE]) == fuse(parse_fusion(means), [LEXICAL, DENSE])


def test_saturation_without_lexical_matches() -> None:
    assert scores(
        fuse(parse_fusion("saturation(half.lexical=4, dense=0.75, lexical=0.25)"), [DENSE])
    ) == {
        "b": 0.9,
        "d": 0.5,
    }
    unrelated = ranking("dense", -1.0, a=0.5, b=-0.5)
    assert scores(
        fuse(parse_fusion("saturation(half.lexical=4, dense=1, lexical=0)"), [LEXICAL, unrelated])
    ) == {
        "a": 0.5,
        "b": 0.0,
    }


def test_rrf_contributions() -> None:
    first, second, *_ = fuse(parse_fusion("rrf(lexical=3)"), [LEXICAL, DENSE])
    assert first.contributions == (
        Contribution(leg="dense", rank=1, score=0.9, normalised=1 / 61, weight=0.25),
        Contribution(leg="lexical", rank=2, score=6.0, normalised=1 / 62, weight=0.75),
    )
    assert second.contributions[0] == Contribution(
        leg="dense", rank=None, score=-1.0, normalised=0.0, weight=0.25
    )


def test_bounded_contributions_sum_to_score() -> None:
    for fused in fuse(parse_fusion("tm2c2(dense=0.3, lexical=0.7)"), [LEXICAL, DENSE]):
        assert sum(part.weight * part.normalised for part in fused.contributions) == pytest.approx(
            fused.score
        )


def test_weights_are_relative() -> None:
    light, heavy = (
        parse_fusion("convex(lexical=0.2, dense=0.6)"),
        parse_fusion("convex(lexical=1e300, dense=3e300)"),
    )
    assert scores(fuse(light, [LEXICAL, DENSE])) == pytest.approx(
        scores(fuse(heavy, [LEXICAL, DENSE]))
    )


def test_score_never_exceeds_one() -> None:
    legs = [ranking(f"leg{place}", 0.0, a=1.0) for place in range(7)]
    weights = ", ".join(f"leg{place}=0.{place + 1}" for place in range(7))
    assert scores(fuse(parse_fusion(f"convex({weights})"), legs)) == {"a": pytest.approx(1.0)}
    assert fuse(parse_fusion(f"convex({weights})"), legs)[0].score <= 1.0
