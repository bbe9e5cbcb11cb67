"""Fusion specifications parse, print and reject invalid options."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.rankings import DENSE, LEXICAL, METHODS, ids
from trivet.errors import InvalidInput
from trivet.search.fuse import (
    Fusion,
    Options,
    fuse,
    fusion_from,
    parse_fusion,
    parse_pipeline,
    register,
)
from trivet.search.fuse import methods as registry_module
from trivet.search.fuse.methods import Combination, Method, Part, Row, Weighted

weights = st.dictionaries(
    st.sampled_from(["lexical", "dense", "graph", "leg-2"]),
    st.floats(0, 1e6, allow_nan=False),
    max_size=3,
)
rrfs = st.builds(
    lambda k, dense, weights: Fusion("rrf", Options({"k": k, "k.dense": dense, **weights})),
    st.floats(0, 1e9),
    st.integers(0, 100).map(float),
    weights,
)
convexes = st.builds(
    lambda norm, weights: Fusion("convex", Options({**weights, "norm": norm})),
    st.sampled_from(["minmax", "tmm", "zscore", "dbsf", "spread"]),
    weights,
)
named = st.builds(
    lambda name, weights: Fusion(name, Options(weights)),
    st.sampled_from(["rsf", "dbsf", "tm2c2", "saturation"]),
    weights,
)


@given(rrfs | convexes | named)
def test_fusions_round_trip(fusion: Fusion) -> None:
    assert parse_fusion(str(fusion)) == fusion
    assert str(parse_fusion(str(fusion))) == str(fusion)
    assert hash(parse_fusion(str(fusion))) == hash(fusion)


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("rrf", "rrf(k=60)"),
        ("rrf(lexical=1,k=60,dense=1)", "rrf(k=60, dense=1, lexical=1)"),
        ("rrf(lexical=2, k.dense=40)", "rrf(k=60, k.dense=40, lexical=2)"),
        ("convex", "convex(norm=minmax)"),
        ("convex(dense=.50, norm=zscore)", "convex(norm=zscore, dense=0.5)"),
        ("rsf()", "rsf"),
        ("dbsf", "dbsf"),
        ("tm2c2(dense=0.8)", "tm2c2(dense=0.8)"),
        ("saturation", "saturation(half=0, without=0.72)"),
        (
            "saturation(lexical=1, half.lexical=4)",
            "saturation(half=0, without=0.72, half.lexical=4, lexical=1)",
        ),
    ],
)
def test_fusions_print_in_canonical_form(written: str, printed: str) -> None:
    assert str(parse_fusion(written)) == printed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rff", "known are rrf, convex, rsf, dbsf, tm2c2, saturation"),
        ("convex(norm=max)", "one of minmax, tmm, zscore, dbsf, spread"),
        ("convex(norm=1)", "one of minmax, tmm, zscore, dbsf, spread"),
        ("convex(k=60)", "convex knows norm, norm.<leg>, <leg>"),
        ("convex(k.dense=60)", "convex has no option 'k.dense'"),
        (
            "convex(norm.dense=max)",
            "norm.dense must be one of minmax, tmm, zscore, dbsf, spread, raw",
        ),
        ("rrf(norm=minmax)", "rrf knows k, k.<leg>, <leg>"),
        ("rsf(norm=minmax)", "rsf has no option 'norm'"),
        ("saturation(half=-1)", "half must be a number of 0 or more"),
        ("saturation(without=2)", "without must be a number from 0 to 1"),
        ("rrf(60)", "rrf takes named options only, not '60'"),
        ("rrf(k=-1)", "a number of 0 or more"),
        ("rrf(k.dense=high)", "a number of 0 or more"),
        ("convex(dense=-1)", "a number of 0 or more"),
        ("convex(norn=zscore)", "read as the weight of a leg"),
    ],
)
def test_invalid_fusion_error_lists_valid_choices(text: str, expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_fusion(text)
    assert expected in str(caught.value)


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -1.0, "much"])
def test_fusion_rejects_invalid_weight(weight: str | float) -> None:
    with pytest.raises(InvalidInput):
        Fusion("rrf", Options({"dense": weight}))


def test_fusion_is_a_recipe_step() -> None:
    _, step, _ = parse_pipeline("legs(lexical, dense) | rrf(k=10) | first(5)")
    assert fusion_from(step) == parse_fusion("rrf(k=10)")
    assert fusion_from(step).call == step


@pytest.mark.parametrize("text", METHODS)
def test_fusion_can_be_copied_and_pickled(text: str) -> None:
    fusion = parse_fusion(text)
    assert pickle.loads(pickle.dumps(fusion)) == copy.deepcopy(fusion) == fusion


def test_method_can_be_registered_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "_methods", dict(registry_module._methods))

    def by_best_rank(rows: Sequence[Row]) -> list[float]:
        return [-min(part.rank for part in row if part.rank) for row in rows]

    def combine(_: Options, legs: Sequence[Weighted]) -> Combination:
        parts = tuple(Part(leg, weight, [0.0] * len(leg.candidates), 0.0) for leg, weight in legs)
        return Combination(parts, bounded=False, score=by_best_rank)

    register(Method("best-rank", combine))
    fused = fuse(parse_fusion("best-rank(dense=1)"), [LEXICAL, DENSE])
    assert ids(fused) == ["a", "b", "d", "c"]
    assert [one.score for one in fused] == [1.0, 1.0, 0.5, 0.0]
    with pytest.raises(InvalidInput, match="already"):
        register(Method("rrf", combine))
