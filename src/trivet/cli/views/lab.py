"""What people see of the lab's answers: tables that fit a terminal and stay whole lines in a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from trivet.cli.lab_runs import RanArm
from trivet.cli.output import Line, line
from trivet.cli.views.memories import preview
from trivet.lab.ablate import Ablated
from trivet.lab.compare import HEADLINE, Comparison
from trivet.lab.compare_runs import GradedHit, MovedQuery, Versus
from trivet.lab.dataset import RELEVANT
from trivet.lab.gate import Verdict
from trivet.lab.lengths import FIRST_HITS, LengthReport, Lengths
from trivet.lab.sweep import Sweep

TOP_SHOWN = 5
LONGEST_ID = 22
SHOWN_BESIDE = ("recall@5", "MRR")
COMPARED = ("base", "candidate", "difference", "95 % interval", "p (Holm)", "detectable", "wins", "losses", "ties")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], strong: int | None = None) -> Iterator[Line]:
    """Columns as wide as they must be, the first to the left and the rest to the right; one row may be strong."""
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


def ran(arms: Sequence[RanArm]) -> Iterator[Line]:
    for number, arm in enumerate(arms, 1):
        yield line((f"{number} ", "bold"), f"{arm.config}  ", (arm.folder, "cyan"))
        if arm.left_out:
            yield line(
                (f"there is no embedder, so it is measured without {', '.join(arm.left_out)}", "yellow"), indent=2
            )
    for measure in (HEADLINE, *arms[0].shown):
        yield line("")
        yield from _by_stratum(arms, measure)
    yield line("")
    yield from lengths([(str(number), arm.lengths) for number, arm in enumerate(arms, 1)])


def _by_stratum(arms: Sequence[RanArm], measure: str) -> Iterator[Line]:
    groups = [("all", [arm.overall for arm in arms])]
    groups += [(name, [arm.by_stratum[name] for arm in arms]) for name in arms[0].by_stratum]
    rows = [
        (name, str(arms[0].queries[name]), *(f"{means[measure]:.4f}" for means in columns)) for name, columns in groups
    ]
    yield from table((measure, "queries", *(str(number) for number in range(1, len(arms) + 1))), rows, strong=0)


def lengths(arms: Sequence[tuple[str, LengthReport | None]]) -> Iterator[Line]:
    """Hits beside answers, in words; one column of answers, since the arms are of one dataset."""
    known = [(name, report) for name, report in arms if report is not None]
    if not known:
        return
    yield line((f"Median words: of the answers, of the first {FIRST_HITS} hits, and their ratio", "bold"))
    strata = dict.fromkeys(name for _, report in known for name in report.by_stratum)
    header = ("", "answers", *(text for name, _ in known for text in (f"hits {name}", "ratio")))
    rows = [_lengths_row("all", [report.overall for _, report in known])]
    rows += [_lengths_row(name, [report.by_stratum.get(name) for _, report in known]) for name in strata]
    yield from table(header, rows, strong=0)


def _lengths_row(name: str, found: Sequence[Lengths | None]) -> tuple[str, ...]:
    answers = next((f"{one.answers:g}" for one in found if one), "-")
    return (
        name,
        answers,
        *(text for one in found for text in ((f"{one.hits:g}", f"{one.ratio:.2f}") if one else "--")),
    )


def compared(value: Versus) -> Iterator[Line]:
    count = next(iter(value.overall.values())).queries
    yield line(("base       ", "bold dim"), f"{value.base.config}  ", (value.base.folder, "cyan"))
    yield line(("candidate  ", "bold dim"), f"{value.candidate.config}  ", (value.candidate.folder, "cyan"))
    for name, side in (("base", value.base), ("candidate", value.candidate)):
        if side.left_out:
            yield line((f"the {name} had no embedder, so it was measured without {', '.join(side.left_out)}", "yellow"))
    yield line("")
    yield line((f"All {count} queries of {value.dataset}", "bold"))
    yield from table(("measure", *COMPARED), [(name, *_cells(one)) for name, one in value.overall.items()])
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
        yield line((f"The queries that moved most in {value.measure} (grade in brackets)", "bold"))
    for moved in value.moved:
        yield from _moved(moved)


def _cells(one: Comparison) -> tuple[str, ...]:
    return (
        f"{one.base:.4f}",
        f"{one.candidate:.4f}",
        f"{one.difference:+.4f}",
        interval(one.low, one.high),
        f"{one.corrected_p:.4f}",
        "-" if one.detectable is None else f"{one.detectable:.4f}",
        str(one.wins),
        str(one.losses),
        str(one.ties),
    )


def interval(low: float, high: float) -> str:
    return f"{low:+.4f} to {high:+.4f}"


def _moved(moved: MovedQuery) -> Iterator[Line]:
    yield line("")
    where = f" ({moved.stratum})" if moved.stratum else ""
    change = "green" if moved.candidate > moved.base else "red"
    yield line((moved.query, "cyan"), f"{where}  ", (f"{moved.base:.3f} -> {moved.candidate:.3f}", change))
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
        f"{name} {'-' if leg.rank is None else leg.rank}" for name, leg in sorted(graded.hit.legs.items(), reverse=True)
    )
    relevant = "*" if graded.grade is not None and graded.grade >= RELEVANT else " "
    return f"{mark}{relevant}{_short(graded.hit.document):<{LONGEST_ID}} {legs}"


def _short(id: str) -> str:
    """Both ends of a long id: its middle tells least apart."""
    half = (LONGEST_ID - 1) // 2
    return id if len(id) <= LONGEST_ID else f"{id[:half]}…{id[-half:]}"


def judged(verdict: Verdict) -> Iterator[Line]:
    if verdict.passed:
        yield line(("The gate is open.", "bold green"))
    else:
        yield line((f"The gate is shut (status {verdict.code}).", "bold red"))
    for reason in verdict.reasons:
        yield line(f"- {reason}")
    if verdict.mended:
        yield line(f"{len(verdict.mended)} cases that failed now pass: {', '.join(verdict.mended[:10])}")


def swept(sweep: Sweep) -> Iterator[Line]:
    slots = list(sweep.varied)
    rows = []
    for point in sweep.points:
        other = point.against_base
        difference = (
            ("base", "", "")
            if other is None
            else (f"{other.difference:+.4f}", interval(other.low, other.high), f"{other.corrected_p:.4f}")
        )
        values = [point.values[slot] for slot in slots]
        rows.append((*values, f"{point.overall[HEADLINE]:.4f}", *difference, *_beside(point.overall)))
    yield from table((*slots, HEADLINE, "difference", "95 % interval", "p (Holm)", *SHOWN_BESIDE), rows, strong=0)
    yield line("")
    yield line(("best  ", "bold dim"), sweep.points[0].recipe)
    if len(sweep.points) > 1:
        yield line((f"It is the best of {len(sweep.points)} on this data; confirm it on other data.", "dim"))


def ablated(value: Ablated) -> Iterator[Line]:
    rows = []
    for one in value.ablations:
        other = one.against_whole
        difference = (
            ("", "", "")
            if other is None
            else (f"{other.difference:+.4f}", interval(other.low, other.high), f"{other.corrected_p:.4f}")
        )
        rows.append((one.name, f"{one.overall[HEADLINE]:.4f}", *difference, *_beside(one.overall)))
    yield from table(("recipe", HEADLINE, "difference", "95 % interval", "p (Holm)", *SHOWN_BESIDE), rows, strong=0)
    yield line("")
    yield line(("whole  ", "bold dim"), value.recipe)
    if value.left_out:
        yield line((f"There is no embedder, so it is measured without {', '.join(value.left_out)}.", "yellow"))
    for found in value.overlaps:
        yield line("")
        yield line((f"{found.leg} alone beside the recipe without it. ", "bold"), found.rules.sentence)


def _beside(overall: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(f"{overall[name]:.4f}" for name in SHOWN_BESIDE)
