"""The defaults still find what they found on the house set when they were chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from trivet.lab.datasets.plain_layout import house
from trivet.lab.measure.bench import Bench, open_bench
from trivet.lab.measure.gate import CASES_FAIL, MRR_FELL, gate
from trivet.lab.measure.measures import Measured
from trivet.lab.measure.run import run_arm
from trivet.lab.report.saved_runs import read_measured

BASELINE = Path(__file__).parent / "baseline"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return open_bench(house(), tmp_path_factory.mktemp("house"))


@pytest.fixture(scope="module")
def baseline() -> Measured:
    return read_measured(BASELINE)


def test_set_has_enough_queries_of_each_kind() -> None:
    assert {name: len(queries) >= 50 for name, queries in house().strata.items()} == dict.fromkeys(
        ("exact", "identifier", "multi-hop", "other-language", "paraphrase", "superseded"), True
    )


def test_defaults_have_not_got_worse(bench: Bench, baseline: Measured) -> None:
    arm = run_arm(bench, "default")
    verdict = gate(baseline, arm.measured, gain_needed=False, lengths=(None, arm.lengths))
    assert verdict.passed, verdict.reasons
    assert {name for name, found in arm.lengths.by_stratum.items() if found} == set(
        bench.dataset.strata
    )


def test_worse_recipe_fails(bench: Bench, baseline: Measured) -> None:
    verdict = gate(baseline, run_arm(bench, "legs(lexical)").measured, gain_needed=False)
    assert verdict.code & CASES_FAIL
    assert verdict.code & MRR_FELL
