"""Drawings of the graph's evidence, in the lab's style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trivet.lab.plots import COLOURS, GREY, MARKERS, WIDTH, _figure, _legend

Figures = Mapping[str, Any]
MEASURES = ("nDCG@10", "recall@10")


def weight_curves(corpora: Mapping[str, Sequence[tuple[float, Figures]]], tolerated: float, default: float) -> str:
    """A panel a corpus: what three legs gain over two at each weight, with intervals. Scales differ."""
    rows = (len(corpora) + 3) // 4
    with _figure(WIDTH + 3, 3.0 * rows + 0.8) as (figure, drawn):
        panels: Any = figure.subplots(rows, 4, sharex=True, squeeze=False).ravel()
        for axes, (corpus, points) in zip(panels, corpora.items(), strict=False):
            for place, measure in enumerate(MEASURES):
                weights = [weight for weight, _ in points]
                axes.fill_between(
                    weights,
                    [figures[measure]["low"] for _, figures in points],
                    [figures[measure]["high"] for _, figures in points],
                    color=COLOURS[place],
                    alpha=0.15,
                    linewidth=0,
                )
                gains = [figures[measure]["difference"] for _, figures in points]
                axes.plot(weights, gains, f"-{MARKERS[place]}", color=COLOURS[place], markersize=4, label=measure)
            axes.axhline(0, color=GREY, linewidth=0.9)
            axes.axhline(-tolerated, color=COLOURS[4], linewidth=1, linestyle="--", label=f"-{tolerated:g} nDCG@10")
            axes.axvline(default, color=GREY, linewidth=0.9, linestyle=":", label="default weight")
            low, high = axes.get_ylim()
            axes.set_ylim(min(low, -0.02), max(high, 0.02))
            axes.set_title(corpus)
        for axes in panels[len(corpora) :]:
            axes.set_visible(False)
        for axes in panels[-4:]:
            axes.set_xlabel("weight of the graph leg")
        for axes in panels[::4]:
            axes.set_ylabel("three legs minus two")
        _legend(figure, panels[0], 4)
    return drawn[0]


def strata_gains(corpora: Mapping[str, Sequence[tuple[str, Figures]]]) -> str:
    """A panel a corpus: the gain in each stratum with its interval."""
    most = max(len(strata) for strata in corpora.values())
    with _figure(WIDTH + 4, 0.42 * most + 1.8) as (figure, drawn):
        panels: Any = figure.subplots(1, len(corpora), squeeze=False)[0]
        for axes, (corpus, strata) in zip(panels, corpora.items(), strict=True):
            for place, measure in enumerate(MEASURES):
                heights = [-row - 0.12 + 0.24 * (1 - place) for row in range(len(strata))]
                gains = [figures[measure] for _, figures in strata]
                axes.errorbar(
                    [one["difference"] for one in gains],
                    heights,
                    xerr=[
                        [one["difference"] - one["low"] for one in gains],
                        [one["high"] - one["difference"] for one in gains],
                    ],
                    fmt=MARKERS[place],
                    color=COLOURS[place],
                    markersize=5,
                    capsize=2,
                    elinewidth=1.2,
                    label=measure,
                )
            axes.axvline(0, color=GREY, linewidth=0.9)
            names = [f"{name} ({figures['queries']})" for name, figures in strata]
            axes.set_yticks([-row for row in range(len(strata))], names)
            axes.grid(axis="y", visible=False)
            axes.set_title(corpus)
            axes.set_xlabel("three legs minus two")
        _legend(figure, panels[0], 2)
    return drawn[0]
