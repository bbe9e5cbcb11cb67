"""The gate of code search: no measure falls below an earlier run, and no forbidden file is found."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.code.figures import GROUPS, MEASURES
from trivet.lab.code.measure import Measurement
from trivet.lab.compare import ALPHA, Comparison, compare
from trivet.lab.measures import Measured, means
from trivet.lab.read_files import content

# As in the gate of recall, 4 is for a single case: that one broke.
FELL, FORBIDDEN_FOUND = 1, 4


class CodeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """`code` is 0 for passed, or the sum of 1 (a measure fell) and 4 (a forbidden file is among the first ten)."""

    code: int
    reasons: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return self.code == 0


class _Baseline(msgspec.Struct, frozen=True):
    scope: str
    sha256: str
    per_query: dict[str, dict[str, float]]
    strata: dict[str, list[str]]


def read_baseline(path: Path) -> _Baseline:
    try:
        return msgspec.json.decode(content(path), type=_Baseline)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: {error}. Give the measures.json that `trivet lab code` has written.") from None


def judge(measurement: Measurement, baseline: _Baseline | None, forbid: bool) -> CodeVerdict:
    """Judges the first recipe. Without a baseline only forbidden files can fail."""
    fallen = _fallen(measurement, baseline) if baseline else []
    found = measurement.report.arms[0].forbidden.found if forbid else ()
    code = (FELL if fallen else 0) | (FORBIDDEN_FOUND if found else 0)
    barred = [f"{len(found)} forbidden files are among the first ten: {', '.join(found[:10])}"] if found else []
    return CodeVerdict(code=code, reasons=(*fallen, *barred))


def check_same_data(report_sha256: str, baseline: _Baseline, path: Path) -> None:
    if report_sha256 != baseline.sha256:
        raise InvalidInput(
            f"{path} was measured on other queries, grades or another scope ({baseline.scope}). Only runs over the "
            "same data can be compared: make the baseline anew."
        )


def _fallen(measurement: Measurement, baseline: _Baseline) -> list[str]:
    """Groups by their interval; strata, of which there are many, also after Holm's correction."""
    base = Measured(
        per_query=baseline.per_query,
        overall={},
        by_stratum={name: means(baseline.per_query, ids) for name, ids in baseline.strata.items()},
        strata={name: tuple(ids) for name, ids in baseline.strata.items()},
    )
    compared = compare(base, measurement.values, MEASURES).by_stratum
    return [
        f"{name} of {group} fell from {one.base:.4f} to {one.candidate:.4f} ({one.low:+.4f} to {one.high:+.4f})"
        for group, found in compared.items()
        for name, one in found.items()
        if _fell(group, one)
    ]


def _fell(group: str, one: Comparison) -> bool:
    return one.high < 0 and (group in GROUPS or one.corrected_p < ALPHA)
