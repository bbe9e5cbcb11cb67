"""Calibration measures match small examples."""

from __future__ import annotations

import pytest

from trivet.lab.measure.delivery import (
    expected_calibration_error,
    refused,
    reliability,
    threshold_keeping,
)


def test_calibrated_probabilities_have_zero_error() -> None:
    stated = [0.25] * 4 + [0.75] * 4
    relevant = [True, False, False, False, True, True, True, False]
    assert expected_calibration_error(stated, relevant) == 0.0
    assert [(part.count, part.stated, part.true) for part in reliability(stated, relevant)] == [
        (4, 0.25, 0.25),
        (4, 0.75, 0.75),
    ]


def test_overconfidence_counts_as_error() -> None:
    assert expected_calibration_error([1.0, 1.0], [False, False]) == 1.0
    assert expected_calibration_error([0.9] * 10, [True] * 5 + [False] * 5) == pytest.approx(0.4)
    assert expected_calibration_error([], []) == 0.0


def test_threshold_keeps_requested_share() -> None:
    best = [number / 10 for number in range(1, 11)]
    assert threshold_keeping(best, 0.9) == 0.2
    assert refused(best, 0.2) == pytest.approx(0.1)
    assert threshold_keeping(best, 1.0) == 0.1
    assert (threshold_keeping([]), refused([], 0.5)) == (0.0, 0.0)
