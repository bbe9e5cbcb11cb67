"""SVG plots in colors that color-blind readers can distinguish."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trivet.lab.optional_packages import PLOTTING, need
from trivet.search.legs.leg import Leg
from trivet.search.legs.registry import leg_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colors, without yellow (hard to see on white) and black (looks like text).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6A3D9A", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# Hatches distinguish further rounds through the colors.
HATCHES = ("", "////", "....", "xxxx")
RELEVANT_COLOUR, OTHER_COLOUR = COLOURS[0], COLOURS[1]
GREY = "#4a525a"

WIDTH = 9.0  # Inches; the page is this wide.
BINS = 30

STYLE: Any = {
    "svg.fonttype": "none",  # Text stays text: it can be read aloud, searched and copied.
    "svg.hashsalt": "trivet",  # Equal figures give equal files.
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8c959f",
    "axes.labelcolor": "#1b1f24",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e7eb",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "figure.facecolor": "white",
}


@dataclass(frozen=True)
class LatencyPoint:
    label: str
    quality: float
    low: float
    high: float
    p50: float
    p95: float


@dataclass(frozen=True)
class Bar:
    value: float
    low: float
    high: float


def quality_against_latency(spots: Sequence[LatencyPoint], measure: str) -> str:
    with _figure(WIDTH, 4.6) as (figure, drawn):
        axes = figure.add_subplot()
        for place, spot in enumerate(spots):
            colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
            axes.plot(
                [spot.p50, spot.p95], [spot.quality] * 2, color=colour, linewidth=1.2, alpha=0.45
            )
            axes.errorbar(
                spot.p50,
                spot.quality,
                yerr=[[max(0.0, spot.quality - spot.low)], [max(0.0, spot.high - spot.quality)]],
                fmt=marker,
                color=colour,
                markersize=8,
                capsize=3,
                elinewidth=1.2,
                label=spot.label,
            )
        axes.set_title(f"{measure} against time for one recall")
        axes.set_xlabel(
            "time for one recall (ms): point = median, line to the right = up to the 95th "
            "percentile"
        )
        axes.set_ylabel(f"{measure} (0 to 1)")
        axes.set_xlim(left=0)
        _legend(figure, axes, len(spots))
    return drawn[0]


def strata_bars(strata: Sequence[str], bars: Mapping[str, Sequence[Bar]], measure: str) -> str:
    width = 0.84 / len(bars)
    rows = (len(bars) + 1) // 2
    with _figure(max(WIDTH, 0.16 * len(bars) * len(strata) + 2), 4.2 + 0.22 * rows) as (
        figure,
        drawn,
    ):
        axes = figure.add_subplot()
        for place, (label, column) in enumerate(bars.items()):
            offsets = [group - 0.42 + width * (place + 0.5) for group in range(len(strata))]
            errors = [
                [max(0.0, bar.value - bar.low) for bar in column],
                [max(0.0, bar.high - bar.value) for bar in column],
            ]
            axes.bar(
                offsets,
                [bar.value for bar in column],
                width * 0.92,
                yerr=errors,
                color=COLOURS[place % len(COLOURS)],
                hatch=HATCHES[place // len(COLOURS) % len(HATCHES)],
                edgecolor="white",
                linewidth=0.3,
                error_kw={"elinewidth": 0.8, "ecolor": GREY},
                label=label,
            )
        axes.set_xticks(range(len(strata)), [stratum.replace(" (", "\n(") for stratum in strata])
        axes.tick_params(axis="x", length=0)
        axes.grid(axis="x", visible=False)
        axes.set_ylim(0, 1)
        axes.set_title(f"{measure} by stratum")
        axes.set_xlabel("stratum (number of queries)")
        axes.set_ylabel(f"mean {measure} (0 to 1)")
        _legend(figure, axes, len(bars))
    return drawn[0]


def sweep_curves(curves: Mapping[str, Mapping[str, Sequence[float]]], measure: str) -> str:
    with _figure(WIDTH, 3.6) as (figure, drawn):
        panels: Any = figure.subplots(1, len(curves), sharey=True, squeeze=False)[0]
        for place, (axes, (parameter, settings)) in enumerate(
            zip(panels, curves.items(), strict=True)
        ):
            names = _ascending(list(settings))
            for x, name in enumerate(names):
                values = settings[name]
                axes.plot(
                    [x] * len(values),
                    values,
                    "o",
                    color=COLOURS[5],
                    markersize=4,
                    alpha=0.55,
                    zorder=2,
                )
            best = [max(settings[name]) for name in names]
            mean = [sum(settings[name]) / len(settings[name]) for name in names]
            axes.plot(
                range(len(names)), best, "-o", color=COLOURS[0], linewidth=2, label="best", zorder=4
            )
            axes.plot(
                range(len(names)),
                mean,
                "--s",
                color=COLOURS[1],
                linewidth=1.5,
                label="mean",
                zorder=3,
            )
            axes.set_xticks(range(len(names)), names)
            axes.set_xlim(-0.4, len(names) - 0.6)
            axes.set_xlabel(parameter)
            if place == 0:
                axes.set_ylabel(f"{measure} (0 to 1)")
                axes.set_title(f"{measure} by each parameter")
        _legend(figure, panels[0], 2)
    return drawn[0]


def score_distributions(legs: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> str:
    with _figure(WIDTH, 3.6) as (figure, drawn):
        panels: Any = figure.subplots(1, len(legs), squeeze=False)[0]
        for place, (axes, (leg, (relevant, others))) in enumerate(
            zip(panels, legs.items(), strict=True)
        ):
            everything = [*relevant, *others]
            reach = (
                (min(everything), max(everything)) if min(everything) < max(everything) else None
            )
            for scores, colour, name in (
                (others, OTHER_COLOUR, "not relevant, or not judged"),
                (relevant, RELEVANT_COLOUR, "relevant"),
            ):
                if not scores:
                    continue
                shape: Any = {
                    "bins": BINS,
                    "range": reach,
                    "weights": [100 / len(scores)] * len(scores),
                    "color": colour,
                }
                axes.hist(scores, alpha=0.35, **shape)
                axes.hist(scores, histtype="step", linewidth=1.6, label=name, **shape)
            axes.set_title(leg)
            known = leg_named(leg)
            axes.set_xlabel(f"score of the {leg} leg ({known.unit if known else Leg.unit})")
            if place == 0:
                axes.set_ylabel("share of the hits (%)")
        _legend(figure, panels[0], 2)
    return drawn[0]


@contextmanager
def _figure(width: float, height: float) -> Iterator[tuple[Figure, list[str]]]:
    """Yield a figure and a list that later holds its SVG; use no window system."""
    need(*PLOTTING)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    drawn: list[str] = []
    with rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, drawn
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
        drawn.append(text.getvalue())


def _legend(figure: Figure, axes: Axes, entries: int) -> None:
    handles, names = axes.get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside lower center", ncols=min(entries, 2 if entries > 3 else 3)
    )


def _ascending(names: list[str]) -> list[str]:
    try:
        return sorted(names, key=float)
    except ValueError:
        return names
