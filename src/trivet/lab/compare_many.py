"""Several candidates against one base in one measure: one family of tests, corrected as such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trivet.lab.compare import Comparison, correct, paired
from trivet.lab.measures import Measured

# What arms are ranked by: it looks at the order and at the grades.
HEADLINE = "nDCG@10"


def against(base: Measured, candidates: Sequence[Measured], measure: str = HEADLINE) -> list[Comparison]:
    """A comparison for each candidate, with the same resamples for all, `corrected_p` over all of them."""
    if not candidates:
        return []
    before = {str(place): base.per_query[measure] for place in range(len(candidates))}
    after = {str(place): one.per_query[measure] for place, one in enumerate(candidates)}
    return [replace(one, measure=measure) for one in correct(paired(before, after))]
