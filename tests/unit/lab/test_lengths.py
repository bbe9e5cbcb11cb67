"""Hit lengths are compared with answer lengths, and the gate rejects length bias."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.small_dataset import dataset
from trivet.lab.datasets.dataset import Document
from trivet.lab.measure.gate import LENGTH_BIAS, gate
from trivet.lab.measure.hit_analysis import LengthReport, Lengths, count_words, lengths
from trivet.lab.measure.measures import measure

GRADES = {"q1": {"a": 2, "b": 0}, "q2": {"a": 1}, "q3": {"c": 1}}
WORDS = {"a": 4, "b": 40, "c": 20}
SMALL = replace(
    dataset(GRADES, {"q1": "plain", "q2": "plain", "q3": "other"}),
    documents=tuple(Document(id=id, text="word " * count) for id, count in WORDS.items()),
)
RUN = {"q1": [("b", 2.0), ("a", 1.0)], "q2": [("b", 2.0)], "q3": [("c", 1.0)]}


def test_words_are_counted_in_any_script() -> None:
    assert count_words("Two words,  and 東京都 too") == 6
    assert count_words("") == 0


def test_median_lengths_of_hits_and_answers() -> None:
    found = lengths(SMALL, RUN)
    assert found.overall == Lengths(
        hits=30, answers=4, ratio=7.5
    )  # hits 4, 20, 40, 40; answers 4, 4, 20
    assert found.by_stratum == {
        "other": Lengths(hits=20, answers=20, ratio=1),
        "plain": Lengths(hits=40, answers=4, ratio=10),
    }
    assert lengths(SMALL, {}).overall is None


def report(ratio: float) -> LengthReport:
    return LengthReport(overall=Lengths(hits=ratio * 10, answers=10, ratio=ratio))


@pytest.mark.parametrize(
    ("base", "candidate", "unfair"),
    [
        (None, 1.5, False),
        (None, 1.6, True),
        (None, 0.6, True),
        (2.0, 2.05, False),
        (2.0, 2.2, True),
        (1.0, None, False),
    ],
)
def test_gate_rejects_length_bias(
    base: float | None, candidate: float | None, unfair: bool
) -> None:
    measured = measure(SMALL, RUN)
    both = (report(base) if base else None, report(candidate) if candidate else None)
    verdict = gate(measured, measured, gain_needed=False, lengths=both)
    assert verdict.code == (LENGTH_BIAS if unfair else 0)
    assert len(verdict.reasons) == unfair
