"""The lab's results as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from trivet.cli.commands.lab.runs import ArmSummary
from trivet.cli.terminal import Line, line
from trivet.cli.views.memories import preview
from trivet.lab.datasets.dataset import RELEVANT
from trivet.lab.measure.comparison import (
    COMPARISON_COLUMNS,
    DIFFERENCE_COLUMNS,
    HEADLINE,
    Comparison,
    TestedDifference,
    comparison_cells,
    difference_cells,
)
from trivet.lab.measure.delivery import SURFACES, DeliveryReport, Row, Share, Surface, measure_named
from trivet.lab.measure.gate import Verdict
from trivet.lab.measure.hit_analysis import FIRST_HITS, LengthReport, length_cells
from trivet.lab.measure.recipe_variants import Ablated, Sweep
from trivet.lab.report.countings import Countings
from trivet.lab.report.saved_runs import ArmComparison, GradedHit, MovedQuery

TOP_SHOWN = 5
LONGEST_ID = 22
EXTRA_MEASURES = ("recall@5", "MRR")
VARIANT_COLUMNS = (HEADLINE, *DIFFERENCE_COLUMNS, *EXTRA_MEASURES)
COMPARED = ("base", "candidate", *COMPARISON_COLUMNS)


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], strong: int | None = None
) -> Iterator[Line]:
    """Yield columns of minimal width, the first left-aligned; the row `strong` is bold."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    yield line((_row(header, widths), "bold dim"))
    for place, row in enumerate(rows):
        yield line((_row(row, widths), "bold" if place == strong else ""))


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = [
        cell.ljust(width) if place == 0 else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join((first, *rest))


def run_lines(arms: Sequence[ArmSummary]) -> Iterator[Line]:
    for number, arm in enumerate(arms, 1):
        yield line((f"{number} ", "bold"), f"{arm.config}  ", (arm.folder, "cyan"))
        if arm.left_out:
            yield line(
                (
                    f"measured without {', '.join(arm.left_out)}, because there is no embedder",
                    "yellow",
                ),
                indent=2,
            )
    for measure in (HEADLINE, *arms[0].shown):
        yield line("")
        yield from _by_stratum(arms, measure)
    yield line("")
    yield from lengths([(str(number), arm.lengths) for number, arm in enumerate(arms, 1)])


def _by_stratum(arms: Sequence[ArmSummary], measure: str) -> Iterator[Line]:
    groups = [("all", [arm.overall for arm in arms])]
    groups += [(name, [arm.by_stratum[name] for arm in arms]) for name in arms[0].by_stratum]
    rows = [
        (name, str(arms[0].queries[name]), *(f"{means[measure]:.4f}" for means in columns))
        for name, columns in groups
    ]
    yield from table(
        (measure, "queries", *(str(number) for number in range(1, len(arms) + 1))), rows, strong=0
    )


def lengths(arms: Sequence[tuple[str, LengthReport | None]]) -> Iterator[Line]:
    known = [(name, report) for name, report in arms if report is not None]
    if not known:
        return
    yield line(
        (f"Median words: of the answers, of the first {FIRST_HITS} hits, and their ratio", "bold")
    )
    strata = dict.fromkeys(name for _, report in known for name in report.by_stratum)
    header = ("", "answers", *(text for name, _ in known for text in (f"hits {name}", "ratio")))
    rows = [("all", *length_cells([report.overall for _, report in known], "-"))]
    rows += [
        (name, *length_cells([report.by_stratum.get(name) for _, report in known], "-"))
        for name in strata
    ]
    yield from table(header, rows, strong=0)


def compared(value: ArmComparison) -> Iterator[Line]:
    count = next(iter(value.overall.values())).queries
    yield line(("base       ", "bold dim"), f"{value.base.config}  ", (value.base.folder, "cyan"))
    yield line(
        ("candidate  ", "bold dim"), f"{value.candidate.config}  ", (value.candidate.folder, "cyan")
    )
    for name, side in (("base", value.base), ("candidate", value.candidate)):
        if side.left_out:
            yield line(
                (
                    f"the {name} was measured without {', '.join(side.left_out)}, because it had "
                    "no embedder",
                    "yellow",
                )
            )
    yield line("")
    yield line((f"All {count} queries of {value.dataset}", "bold"))
    yield from table(
        ("measure", *COMPARED), [(name, *_cells(one)) for name, one in value.overall.items()]
    )
    if value.by_stratum:
        rows = [
            (f"{stratum} ({by[value.measure].queries})", *_cells(by[value.measure]))
            for stratum, by in value.by_stratum.items()
        ]
        yield line("")
        yield line((f"{value.measure} by stratum", "bold"))
        yield from table(("stratum", *COMPARED), rows)
    if value.base.lengths or value.candidate.lengths:
        yield line("")
        yield from lengths([("base", value.base.lengths), ("candidate", value.candidate.lengths)])
    if value.moved:
        yield line("")
        yield line(
            (f"The queries that changed most in {value.measure} (grade in brackets)", "bold")
        )
    for moved in value.moved:
        yield from _moved(moved)


def _cells(one: Comparison) -> tuple[str, ...]:
    return (f"{one.base:.4f}", f"{one.candidate:.4f}", *comparison_cells(one, "-"))


def _moved(moved: MovedQuery) -> Iterator[Line]:
    yield line("")
    where = f" ({moved.stratum})" if moved.stratum else ""
    change = "green" if moved.candidate > moved.base else "red"
    yield line(
        (moved.query, "cyan"), f"{where}  ", (f"{moved.base:.3f} -> {moved.candidate:.3f}", change)
    )
    yield line((preview(moved.text), "italic"), indent=4)
    pairs = zip_longest(moved.base_top[:TOP_SHOWN], moved.candidate_top[:TOP_SHOWN])
    rows = [(_hit(left), _hit(right)) for left, right in pairs]
    width = max((len(left) for left, _ in rows), default=0)
    for rank, (left, right) in enumerate(rows, 1):
        yield line(f"{rank}  {left.ljust(width)}  |  {right}", indent=4)


def _hit(graded: GradedHit | None) -> str:
    if graded is None:
        return ""
    mark = "[ ]" if graded.grade is None else f"[{graded.grade}]"
    legs = ", ".join(
        f"{name} {'-' if leg.rank is None else leg.rank}"
        for name, leg in sorted(graded.hit.legs.items(), reverse=True)
    )
    relevant = "*" if graded.grade is not None and graded.grade >= RELEVANT else " "
    return f"{mark}{relevant}{_shorten_id(graded.hit.document):<{LONGEST_ID}} {legs}"


def _shorten_id(id: str) -> str:
    half = (LONGEST_ID - 1) // 2  # keep both ends, which differ most
    return id if len(id) <= LONGEST_ID else f"{id[:half]}…{id[-half:]}"


def verdict_lines(verdict: Verdict) -> Iterator[Line]:
    if verdict.passed:
        yield line(("Passed.", "bold green"))
    else:
        yield line((f"Failed (status {verdict.code}).", "bold red"))
    for reason in verdict.reasons:
        yield line(f"- {reason}")
    if verdict.mended:
        yield line(
            f"{len(verdict.mended)} queries that failed now pass: {', '.join(verdict.mended[:10])}"
        )


def sweep_lines(sweep: Sweep) -> Iterator[Line]:
    slots = list(sweep.varied)
    rows = [
        (
            *(point.values[slot] for slot in slots),
            *_variant_cells(point.overall, point.against_base, "base"),
        )
        for point in sweep.points
    ]
    yield from table((*slots, *VARIANT_COLUMNS), rows, strong=0)
    yield line("")
    yield line(("best  ", "bold dim"), sweep.points[0].recipe)
    if len(sweep.points) > 1:
        yield line(
            (
                f"It is the best of {len(sweep.points)} on this data; confirm it on other data.",
                "dim",
            )
        )


def ablation_lines(value: Ablated) -> Iterator[Line]:
    rows = [
        (one.name, *_variant_cells(one.overall, one.against_whole, "")) for one in value.ablations
    ]
    yield from table(("recipe", *VARIANT_COLUMNS), rows, strong=0)
    yield line("")
    yield line(("whole  ", "bold dim"), value.recipe)
    if value.left_out:
        yield line(
            (
                f"Measured without {', '.join(value.left_out)}, because there is no embedder.",
                "yellow",
            )
        )
    for found in value.overlaps:
        yield line("")
        yield line((f"{found.leg} alone and the recipe without it. ", "bold"), found.rules.sentence)


def _variant_cells(
    overall: Mapping[str, float], against: TestedDifference | None, base: str
) -> tuple[str, ...]:
    """Return the cells below VARIANT_COLUMNS; `base` replaces a missing difference."""
    return (
        f"{overall[HEADLINE]:.4f}",
        *((base, "", "") if against is None else difference_cells(against)),
        *(f"{overall[name]:.4f}" for name in EXTRA_MEASURES),
    )


COLUMNS: dict[Surface, tuple[str, ...]] = {
    "recall": ("found@3", "delivered@1", "delivered@3", "refused", "current", "tokens"),
    "prompt": ("found@3", "delivered@1", "delivered@3", "kept", "refused", "current", "tokens"),
    "start": ("delivered", "tokens"),
}
NAMED = {
    "recall": "memory_recall over MCP: it always returns the best candidates; `refused` is that it "
    "calls them irrelevant",
    "prompt": "the hook before a prompt: what it adds",
    "start": "the hook at a session's start",
}
WIDTH = 13


def delivery_lines(delivered: DeliveryReport, more: Sequence[str] = ()) -> Iterator[Line]:
    """Yield a table per surface; `more` names extra measures."""
    asked = tuple(measure_named(one) for one in more)
    for surface in SURFACES:
        columns = tuple(dict.fromkeys((*COLUMNS[surface], *asked)))
        rows = [row for row in delivered.rows if row.surface == surface]
        if not rows:
            continue
        yield line((NAMED[surface], "bold"))
        yield line(
            (
                f"{'stratum':<28}{'queries':>8}" + "".join(f"{name:>{WIDTH}}" for name in columns),
                "dim",
            )
        )
        for row in rows:
            cells = "".join(_cell(row.values.get(name)) for name in columns)
            yield line(f"{row.stratum:<28}{_queries(row):>8}{cells}")
        yield line("")
    if (found := delivered.lengths) is not None:
        yield line(
            f"The median first candidate has {found.hits:g} words, the median answer "
            f"{found.answers:g}: a ratio of {found.ratio:.2f}."
        )
    error, small = delivered.calibration_error, delivered.calibration_error_small
    yield line(
        f"The stated relevance is off by {error:.3f} on average, and by {small:.3f} in stores of "
        "fewer than 50 memories."
    )


def _queries(row: Row) -> int:
    return max(share.queries for share in row.values.values())


def _cell(share: Share | None) -> str:
    if share is None:
        return " " * WIDTH
    return (
        f"{share.mean:.0f}".rjust(WIDTH)
        if share.mean > 1
        else f"{share.mean:.3f} ±{_half(share):.2f}".rjust(WIDTH)
    )


def _half(share: Share) -> float:
    return (share.high - share.low) / 2


def countings_lines(arms: Sequence[Countings]) -> Iterator[Line]:
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
