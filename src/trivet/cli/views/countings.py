"""The table of `trivet lab countings`: a row for each thing that may count as found, a column for each measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trivet.cli.output import Line, line
from trivet.cli.views.lab import table
from trivet.lab.countings import Countings


def lines(arms: Sequence[Countings]) -> Iterator[Line]:
    for arm in arms:
        yield line((arm.dataset, "bold"), f"  {arm.config}")
        measures = list(dict.fromkeys(row.measure for row in arm.rows))
        values = {(row.found, row.questions, row.measure): row for row in arm.rows}
        kinds = dict.fromkeys((row.found, row.questions) for row in arm.rows)
        rows = [
            (
                f"{found}; {questions}",
                str(values[found, questions, measures[0]].count),
                *(f"{values[found, questions, measure].value:.4f}" for measure in measures),
            )
            for found, questions in kinds
        ]
        yield from table(("found; questions", "count", *measures), rows)
        yield line("")
