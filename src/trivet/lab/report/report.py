"""The report on a folder of arms: values, significance and times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trivet.errors import InvalidInput
from trivet.lab.datasets.dataset import RELEVANT
from trivet.lab.measure.comparison import (
    COMPARISON_COLUMNS,
    CONFIDENCE,
    DIFFERENCE_COLUMNS,
    HEADLINE,
    RESAMPLES,
    Comparison,
    against,
    bootstrap_means,
    comparison_cells,
    difference_cells,
    intervals,
)
from trivet.lab.measure.hit_analysis import FIRST_HITS, length_cells
from trivet.lab.measure.measures import Grades
from trivet.lab.measure.recipe_variants import Sweep, SweptPoint, read_sweeps
from trivet.lab.report import plots
from trivet.lab.report.page import (
    Block,
    Page,
    Paragraph,
    Plot,
    Section,
    Table,
    as_html,
    as_markdown,
)
from trivet.lab.report.plots import Bar, LatencyPoint
from trivet.lab.report.saved_runs import SavedArm, grades_of, labels, read_arms

Scores = Mapping[str, tuple[list[float], list[float]]]


def bar(values: Iterable[float]) -> Bar:
    column = np.array(list(values))[:, None]
    ((low, high),) = intervals(bootstrap_means(column, RESAMPLES, 0), CONFIDENCE)
    return Bar(float(column.mean()), low, high)


def spot(label: str, arm: SavedArm, measure: str) -> LatencyPoint | None:
    p50, p95 = latency(arm, "p50"), latency(arm, "p95")
    if p50 is None or p95 is None:
        return None
    mean = bar(arm.measured.per_query[measure].values())
    return LatencyPoint(label, mean.value, mean.low, mean.high, p50, p95)


def latency(arm: SavedArm, percentile: str) -> float | None:
    """Return the slowest leg's time plus fusing and choosing: legs run in parallel."""
    times = arm.manifest.times_ms
    legs = [spread[percentile] for name, spread in times.items() if name.startswith("leg ")]
    if "decide" not in times or not legs:
        return None
    return max(legs) + times["decide"][percentile]


def by_stratum(arm: SavedArm, measure: str) -> list[Bar]:
    values = arm.measured.per_query[measure]
    return [bar(values[query] for query in queries) for queries in arm.measured.strata.values()]


def leg_scores(arms: Sequence[SavedArm], grades: Grades) -> Scores:
    """Return scores of relevant and other hits, from the first arm with the leg."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for arm in arms:
        own: dict[str, tuple[list[float], list[float]]] = {}
        for line in arm.queries.values():
            judged = grades.get(line.query, {})
            for hit in line.top:
                for leg, trace in hit.legs.items():
                    if trace.rank is not None:
                        side = 0 if judged.get(hit.document, 0) >= RELEVANT else 1
                        own.setdefault(leg, ([], []))[side].append(trace.score)
        found = own | found
    return {leg: found[leg] for leg in sorted(found, reverse=True)}


def separation(relevant: Sequence[float], others: Sequence[float]) -> float | None:
    """Return the chance that a relevant hit outscores another; ties count half."""
    if not relevant or not others:
        return None
    ordered = np.sort(np.array(others))
    below = np.searchsorted(ordered, relevant, side="left")
    not_above = np.searchsorted(ordered, relevant, side="right")
    return float((below + not_above).mean() / 2 / len(ordered))


def curves(sweep: Sweep, measure: str) -> dict[str, dict[str, list[float]]]:
    return {
        slot: {
            setting: [
                point.overall[measure] for point in sweep.points if point.values[slot] == setting
            ]
            for setting in dict.fromkeys(settings)
        }
        for slot, settings in sweep.varied.items()
        if len(set(settings)) > 1
    }


PLOTS = "report-plots"
# Facts of the manifest that the report shows, in this order.
MANIFEST_FACTS = (
    "dataset",
    "dataset_sha256",
    "documents",
    "queries",
    "embedder",
    "commit",
    "seed",
    "python",
    "date",
)
BEST_SHOWN = 10
NONE = "–"


def write_report(folder: Path, out: Path) -> list[Path]:
    """Write a self-contained report.html, and report.md with plots."""
    page = make_page(read_arms(folder), read_sweeps(folder))
    (out / PLOTS).mkdir(exist_ok=True)
    for plot in page.plots:
        (out / PLOTS / f"{plot.name}.svg").write_text(plot.svg, encoding="utf-8")
    html, markdown = out / "report.html", out / "report.md"
    html.write_text(as_html(page), encoding="utf-8")
    markdown.write_text(as_markdown(page, PLOTS), encoding="utf-8")
    return [html, markdown]


def make_page(arms: Sequence[SavedArm], sweeps: Mapping[str, Sweep]) -> Page:
    manifest = arms[0].manifest
    for name, sweep in sweeps.items():
        if sweep.dataset_sha256 != manifest.dataset_sha256:
            raise InvalidInput(
                f"{name}.json was swept on other data than the arms. Move it to another folder."
            )
    count = len(arms[0].measured.per_query[HEADLINE])
    sections = [_summary(arms), _measures(arms), *_lengths(arms), *_latency(arms), *_strata(arms)]
    sections += [
        _sweep(name, sweep, number) for number, (name, sweep) in enumerate(sweeps.items(), 1)
    ]
    sections += [_distributions(arms), _manifest(arms)]
    return Page(
        title=f"Recall on {manifest.dataset}",
        opening=f"{len(arms)} {'way' if len(arms) == 1 else 'ways'} to recall, measured on the "
        f"same {count} queries of the dataset {manifest.dataset}. The first is the base of the "
        "comparison.",
        sections=sections,
    )


def _summary(arms: Sequence[SavedArm]) -> Section:
    compared = [None, *against(arms[0].measured, [arm.measured for arm in arms[1:]])]
    header = ("arm", HEADLINE, *COMPARISON_COLUMNS, "median ms")
    rows = [
        (name, f"{arm.measured.overall[HEADLINE]:.4f}", *_difference(one), _ms(latency(arm, "p50")))
        for name, arm, one in zip(labels(arms), arms, compared, strict=True)
    ]
    explanation = (
        "Differences are against the first arm, query by query. If the 95 % interval (paired "
        "bootstrap) excludes 0, the difference is unlikely to be chance. p is from a "
        "randomization test, corrected for the number of arms (Holm). `detectable` is the "
        "smallest true difference that this many queries would show in four of five trials. Wins, "
        "losses and ties count queries."
    )
    return Section("Summary", [Table(header, rows, base_first=True), Paragraph(explanation)])


def _difference(one: Comparison | None) -> tuple[str, ...]:
    if one is None:
        return (NONE,) * len(COMPARISON_COLUMNS)
    return comparison_cells(one, NONE)


def _measures(arms: Sequence[SavedArm]) -> Section:
    measures = [
        name
        for name in arms[0].measured.overall
        if all(name in arm.measured.overall for arm in arms)
    ]
    rows = [
        (name, *(f"{arm.measured.overall[measure]:.4f}" for measure in measures))
        for name, arm in zip(labels(arms), arms, strict=True)
    ]
    explanation = (
        "judged@10 is the share of the first ten hits that have a judgment. Where it is low, "
        "unjudged hits may be relevant; the condensed measures remove them first."
    )
    return Section(
        "All measures", [Table(("arm", *measures), rows, base_first=True), Paragraph(explanation)]
    )


def _lengths(arms: Sequence[SavedArm]) -> Iterator[Section]:
    known = [
        (name, arm.lengths)
        for name, arm in zip(labels(arms), arms, strict=True)
        if arm.lengths is not None
    ]
    if not known:
        return
    strata = dict.fromkeys(stratum for _, report in known for stratum in report.by_stratum)
    header = (
        "queries",
        "answers",
        *(text for name, _ in known for text in (f"hits of {name}", "ratio")),
    )
    rows = [("all", *length_cells([report.overall for _, report in known], NONE))]
    rows += [
        (stratum, *length_cells([report.by_stratum.get(stratum) for _, report in known], NONE))
        for stratum in strata
    ]
    explanation = (
        f"Median words of the relevant memories and of the first {FIRST_HITS} hits, and their "
        "ratio. Hits far longer or shorter than the answers show that a leg favors a length."
    )
    yield Section(
        "Length of hits and answers", [Table(header, rows, base_first=True), Paragraph(explanation)]
    )


def _latency(arms: Sequence[SavedArm]) -> Iterator[Section]:
    spots = [
        one
        for name, arm in zip(labels(arms), arms, strict=True)
        if (one := spot(name, arm, HEADLINE))
    ]
    if not spots:
        return
    words = "; ".join(f"{one.label}: {one.quality:.3f} at {one.p50:.1f} ms" for one in spots)
    caption = (
        "Vertical lines are 95 % intervals of the mean (bootstrap). Arms share their queries, so "
        "compare arms by the table above instead. The time is the slowest leg, since legs run in "
        "parallel, plus fusing and choosing 100 hits; each is a separate median."
    )
    drawn = plots.quality_against_latency(spots, HEADLINE)
    yield Section(
        "Quality against latency", [Plot("quality-latency", drawn, f"{HEADLINE}: {words}", caption)]
    )


def _strata(arms: Sequence[SavedArm]) -> Iterator[Section]:
    strata = arms[0].measured.strata
    if not strata:
        return
    names = [f"{stratum} ({len(queries)})" for stratum, queries in strata.items()]
    drawn = plots.strata_bars(
        names,
        {name: by_stratum(arm, HEADLINE) for name, arm in zip(labels(arms), arms, strict=True)},
        HEADLINE,
    )
    rows = [
        (stratum, *(f"{arm.measured.by_stratum[name][HEADLINE]:.4f}" for arm in arms))
        for stratum, name in zip(names, strata, strict=True)
    ]
    caption = "Thin lines are 95 % intervals of the mean (bootstrap)."
    plot = Plot(
        "strata",
        drawn,
        f"{HEADLINE} of each arm in each stratum; the table below has the values.",
        caption,
    )
    yield Section("By stratum", [plot, Table(("stratum", *labels(arms)), rows)])


def _sweep(name: str, sweep: Sweep, number: int) -> Section:
    best = sweep.points[0]
    blocks: list[Block] = [
        Paragraph(
            f"Template `{sweep.template}`: {len(sweep.points)} combinations, compared with the "
            "first of the grid."
        )
    ]
    if drawn := curves(sweep, HEADLINE):
        caption = (
            "Each dot is one combination; the lines join the best and the mean at each setting."
        )
        words = f"{HEADLINE} by {', '.join(drawn)}; the best is {best.recipe}."
        blocks.append(Plot(f"sweep-{number}", plots.sweep_curves(drawn, HEADLINE), words, caption))
    header = (*best.values, HEADLINE, *DIFFERENCE_COLUMNS)
    blocks.append(Table(header, [_swept(point) for point in sweep.points[:BEST_SHOWN]]))
    warning = f"The best of {len(sweep.points)} looks better than it is: confirm it on other data."
    blocks.append(Paragraph(f"The best recipe is `{best.recipe}`. {warning}"))
    return Section(f"Sweep: {name}", blocks)


def _swept(point: SweptPoint) -> tuple[str, ...]:
    other = point.against_base
    difference = (NONE,) * len(DIFFERENCE_COLUMNS) if other is None else difference_cells(other)
    return (*point.values.values(), f"{point.overall[HEADLINE]:.4f}", *difference)


def _distributions(arms: Sequence[SavedArm]) -> Section:
    title = "Score distributions of each leg"
    grades = grades_of(arms[0])
    scores = leg_scores(arms, grades) if grades is not None else {}
    if not scores:
        why = (
            "The judgments of this dataset were not found with the arms."
            if grades is None
            else "No leg scored."
        )
        return Section(title, [Paragraph(why)])
    parts = [
        f"{leg}: {apart:.0%}"
        for leg, sides in scores.items()
        if (apart := separation(*sides)) is not None
    ]
    caption = (
        "From the first ten hits of each query, in the first arm that has the leg; each color "
        "sums to 100 %. Chance that a relevant hit outscores another (50 % is a coin toss): "
        f"{', '.join(parts) or NONE}."
    )
    drawn = plots.score_distributions(scores)
    return Section(
        title, [Plot("leg-scores", drawn, f"Histograms of leg scores. {caption}", caption)]
    )


def _manifest(arms: Sequence[SavedArm]) -> Section:
    recipes = [(name, arm.manifest.recipe) for name, arm in zip(labels(arms), arms, strict=True)]
    facts = [(key, _shared(arms, key)) for key in (*MANIFEST_FACTS, "settings", "versions")]
    return Section(
        "How it was made",
        [
            Table(("arm", "whole recipe"), recipes, code=frozenset({1})),
            Table(("fact", "value"), [fact for fact in facts if fact[1]], code=frozenset({1})),
        ],
    )


def _shared(arms: Sequence[SavedArm], key: str) -> str:
    values = dict.fromkeys(_plain(arm.manifest.whole.get(key)) for arm in arms)
    return "; ".join(value for value in values if value)


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(
            f"{name} {_plain(inner)}" for name, inner in value.items() if inner not in ("", None)
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(str, value)) + "]"
    return "" if value is None else str(value)


def _ms(value: float | None) -> str:
    return NONE if value is None else f"{value:.1f}"
