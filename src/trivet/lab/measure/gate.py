"""The gate for a candidate recipe: no loss, some gain, and no broken cases."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from trivet.lab.measure.comparison import Comparison, compare
from trivet.lab.measure.hit_analysis import LengthReport
from trivet.lab.measure.measures import Measured

# Largest loss of MRR and smallest gain of any measure, both relative to the base.
MAX_MRR_LOSS = 0.02
MIN_GAIN = 0.03
# A case passes if a relevant hit is among the first five, which is what an agent reads.
CASE_MEASURE = "any@5"
GATE_MEASURES = ("recall@5", "recall@10", "nDCG@10", "MRR", "any@5", "all@5")

# Bounds the ratio of the median hit's length to the median answer's. If the base already exceeds
# it, a candidate may exceed it as far, plus the slack, which nobody notices.
LENGTH_RATIO = 1.5
LENGTH_SLACK = 1.05

MRR_FELL, NOTHING_GAINED, CASES_FAIL, LENGTH_BIAS = 1, 2, 4, 8


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict; `code` adds MRR_FELL, NOTHING_GAINED, CASES_FAIL and LENGTH_BIAS."""

    code: int
    reasons: tuple[str, ...]
    broken: tuple[str, ...]
    mended: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return self.code == 0


def gate(
    base: Measured,
    candidate: Measured,
    gain_needed: bool = True,
    may_break: float = 0.0,
    lengths: tuple[LengthReport | None, LengthReport | None] = (None, None),
) -> Verdict:
    """Judge a candidate.

    `may_break` is the share of cases that may fail if more are fixed: 0 for cases a person wrote, a
    few percent for generated ones.
    """
    compared = compare(
        base, candidate, [name for name in GATE_MEASURES if name in base.per_query]
    ).overall
    broken, mended = _cases(base, candidate)
    code, reasons = 0, []
    if compared["MRR"].candidate < compared["MRR"].base * (1 - MAX_MRR_LOSS):
        code |= MRR_FELL
        reasons.append(
            f"MRR fell from {compared['MRR'].base:.4f} to {compared['MRR'].candidate:.4f}"
        )
    if gain_needed and not any(_gained(one) for one in compared.values()):
        code |= NOTHING_GAINED
        reasons.append(
            f"no measure gained {MIN_GAIN:.0%} with its interval above zero; "
            f"{_best(compared.values())}"
        )
    if len(broken) > min(may_break * len(base.per_query[CASE_MEASURE]), len(mended)):
        code |= CASES_FAIL
        reasons.append(f"{len(broken)} cases that passed now fail: {', '.join(broken[:10])}")
    if (unfair := _length_bias(*lengths)) is not None:
        code |= LENGTH_BIAS
        reasons.append(unfair)
    return Verdict(code=code, reasons=tuple(reasons), broken=broken, mended=mended)


def _gained(one: Comparison) -> bool:
    return one.low > 0 and one.difference >= MIN_GAIN * one.base


def _best(compared: Iterable[Comparison]) -> str:
    best = max(compared, key=lambda one: one.difference / max(one.base, 1e-9))
    return (
        f"the best was {best.measure} {best.difference:+.4f} ({best.low:+.4f} to {best.high:+.4f})"
    )


def _cases(base: Measured, candidate: Measured) -> tuple[tuple[str, ...], tuple[str, ...]]:
    before, after = base.per_query[CASE_MEASURE], candidate.per_query[CASE_MEASURE]
    broken = tuple(query for query in sorted(before) if before[query] and not after[query])
    return broken, tuple(query for query in sorted(before) if after[query] and not before[query])


def _length_bias(base: LengthReport | None, candidate: LengthReport | None) -> str | None:
    found = candidate.overall if candidate else None
    if found is None:
        return None
    allowed = max(math.log(LENGTH_RATIO), _length_deviation(base) + math.log(LENGTH_SLACK))
    if _length_deviation(candidate) <= allowed:
        return None
    return (
        f"the median first hit has {found.hits:g} words and the median answer {found.answers:g}: "
        f"a ratio of {found.ratio:.2f}, outside {math.exp(-allowed):.2f} to {math.exp(allowed):.2f}"
    )


def _length_deviation(report: LengthReport | None) -> float:
    if report is None or report.overall is None:
        return 0.0
    return abs(math.log(report.overall.ratio)) if report.overall.ratio else math.inf
