"""Comparison statistics match worked examples; the scipy checks are in tests/property."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.lab_cases import drawn, one, sides
from trivet.errors import InvalidInput
from trivet.lab.measure.comparison import compare, correct, holm, paired
from trivet.lab.measure.measures import Measured


def test_wins_losses_ties_and_mean() -> None:
    result = one([0.5, 0.25, -0.25, 0.0, 1e-15])
    assert (result.wins, result.losses, result.ties, result.queries) == (2, 1, 2, 5)
    assert result.difference == pytest.approx(0.1)
    assert [result.base, result.candidate] == pytest.approx([0.5, 0.6])


def test_interval_of_large_sample_is_normal() -> None:
    result = one([0.3, -0.1] * 400)
    half = 1.96 * 0.2 / math.sqrt(800)
    assert result.low == pytest.approx(0.1 - half, abs=0.001)
    assert result.high == pytest.approx(0.1 + half, abs=0.001)


def test_equal_wins_give_sign_test_p_value() -> None:
    assert one([0.1] * 6).p == pytest.approx(2 / 2**6)
    assert one([0.1] * 6 + [0.0] * 100).p == pytest.approx(2 / 2**6)


def test_zero_differences_give_p_value_one() -> None:
    result = one([0.0] * 30)
    assert (result.p, result.low, result.high, result.detectable) == (1.0, 0.0, 0.0, None)
    assert result.moved == ()


def test_p_value_is_never_zero() -> None:
    assert one([0.2] * 500).p == pytest.approx(1 / 10_001)


def test_false_positive_rate_matches_level() -> None:
    generator = np.random.default_rng(11)
    trials = 400
    base = {str(trial): {str(query): 0.0 for query in range(40)} for trial in range(trials)}
    candidate = {
        trial: dict(zip(values, generator.normal(0, 0.2, 40).tolist(), strict=True))
        for trial, values in base.items()
    }
    false_alarms = sum(result.p <= 0.05 for result in paired(base, candidate, resamples=2_000))
    # three standard errors around 5%
    assert false_alarms / trials == pytest.approx(0.05, abs=3 * math.sqrt(0.05 * 0.95 / trials))


def test_one_query_has_no_detectable_difference() -> None:
    assert one([0.4]).detectable is None
    assert one([0.4]).p == 1.0


def test_holm_worked_example() -> None:
    # Holm (1979): 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1 raised to the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.5, 0.9]) == pytest.approx((1.0, 1.0))
    assert holm([0.2]) == (0.2,)
    assert holm([]) == ()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_keeps_order_and_stays_below_bonferroni(p_values: list[float]) -> None:
    corrected = holm(p_values)
    for before, after in zip(p_values, corrected, strict=True):
        assert before <= after <= min(1.0, before * len(p_values)) + 1e-12 or after == max(
            corrected
        )
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    assert [corrected[index] for index in order] == sorted(corrected)


def test_result_depends_only_on_seed() -> None:
    differences = drawn(100, mean=0.02)
    assert one(differences, seed=4) == one(differences, seed=4)
    assert one(differences, seed=4).low != one(differences, seed=5).low


def test_result_ignores_query_order_and_other_measures() -> None:
    base, candidate = sides(drawn(100, mean=0.02))
    (alone,) = paired({"MRR": base}, {"MRR": candidate})
    turned = {query: base[query] for query in reversed(base)}
    assert paired({"MRR": turned}, {"MRR": candidate}) == [alone]
    other = {query: 1.0 - value for query, value in candidate.items()}
    _, together = paired({"x": base, "MRR": base}, {"x": other, "MRR": candidate})
    assert together.p == alone.p
    assert together.low == pytest.approx(alone.low, abs=1e-12)


def test_queries_with_largest_change_come_first() -> None:
    result = one([0.1, -0.4, 0.0, 0.4, 0.2] + [0.01] * 20)
    assert [move.query for move in result.moved[:4]] == ["q0001", "q0003", "q0004", "q0000"]
    assert result.moved[0].difference == pytest.approx(-0.4)
    assert len(result.moved) == 10


def measured(values: dict[str, dict[str, float]], strata: dict[str, tuple[str, ...]]) -> Measured:
    return Measured(per_query=values, overall={}, by_stratum={}, strata=strata)


def test_strata_are_compared_and_corrected_separately() -> None:
    base, candidate = sides([0.3] * 8 + [-0.1, 0.1] * 4)
    strata = {"easy": tuple(base)[:8], "hard": tuple(base)[8:]}
    result = compare(measured({"MRR": base}, strata), measured({"MRR": candidate}, strata))
    easy, hard = result.by_stratum["easy"]["MRR"], result.by_stratum["hard"]["MRR"]
    assert (easy.stratum, easy.queries) == ("easy", 8)
    assert easy.p == pytest.approx(2 / 2**8)
    assert easy.corrected_p == pytest.approx(2 * easy.p)
    assert hard.difference == pytest.approx(0.0)
    assert result.overall["MRR"].corrected_p == result.overall["MRR"].p


def test_only_requested_measures_form_family() -> None:
    base, candidate = sides(drawn(50))
    values = {"MRR": base, "recall@5": base}, {"MRR": candidate, "recall@5": candidate}
    both = compare(measured(values[0], {}), measured(values[1], {}))
    single = compare(measured(values[0], {}), measured(values[1], {}), ["MRR"])
    assert list(single.overall) == ["MRR"]
    assert both.overall["MRR"].corrected_p == pytest.approx(
        min(1.0, 2 * single.overall["MRR"].corrected_p)
    )


def test_custom_family_can_be_corrected() -> None:
    family = [one([0.1] * 6), one([0.1] * 8)]
    assert [result.corrected_p for result in correct(family)] == pytest.approx([2 / 2**6, 4 / 2**8])


@pytest.mark.parametrize(
    ("base", "candidate", "message"),
    [
        ({"a": 1.0}, {"b": 1.0}, "query 'a' was measured on one side only"),
        ({"a": 1.0, "b": 1.0}, {"a": 1.0}, "query 'b' was measured on one side only"),
        ({"a": 1.0}, {"a": math.nan}, "query 'a' has the value nan"),
        ({}, {}, "no query to compare"),
    ],
)
def test_unpaired_sides_are_rejected(
    base: dict[str, float], candidate: dict[str, float], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        paired({"MRR": base}, {"MRR": candidate})


def test_measure_missing_on_one_side_is_rejected() -> None:
    base, candidate = sides([0.1, 0.2])
    with pytest.raises(InvalidInput, match="'MRR' was not taken on both sides"):
        compare(measured({"MRR": base}, {}), measured({"x": candidate}, {}), ["MRR"])
    with pytest.raises(InvalidInput, match="No measure in common"):
        compare(measured({"MRR": base}, {}), measured({"x": candidate}, {}))
