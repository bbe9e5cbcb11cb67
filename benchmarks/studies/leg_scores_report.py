"""Writes leg_scores.md and leg_scores.svg beside the results of leg_scores.py.

python benchmarks/studies/leg_scores_report.py docs/results/leg_scores.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from tables import share, table

Figures = Mapping[str, Any]
PAIRS = ("fusion and rerank fast", "fusion and rerank best", "rerank fast and rerank best", "lexical and dense")
PLOTTED = "fusion and rerank best"

INTRODUCTION = """# Scores of the legs, and agreement of reranker and fusion

{asked} questions: {queries}. Default recipe, embedder {embedder}, {date}. Made by

    TRIVET_DATA=... {command} --kept KEPT
    python benchmarks/studies/leg_scores_report.py docs/results/leg_scores.json

A corpus with a number of documents is cut to them, so its figures are higher than those of the whole; they are compared
within it alone. 95 % intervals, by drawing questions anew, are in brackets or in the JSON.
"""


def main() -> None:
    source = Path(sys.argv[1])
    results = json.loads(source.read_text(encoding="utf-8"))
    about = results["manifest"]
    counts = ", ".join(f"{name} {count}" for name, count in about["queries"].items())
    told = about | {"queries": counts, "asked": sum(about["queries"].values())}
    sections = [INTRODUCTION.format(**told).strip(), agreed(results), sure(results), separated(results), long(results)]
    source.with_suffix(".md").write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    plot(results["agreement"], source.with_suffix(".svg"))


def agreed(results: Figures) -> str:
    head = ["", "corpus", "put the same first", "right where they do", "else the one / the other right"]
    rows = [
        [pair, corpus, *_row(figures[pair], pair)]
        for pair in PAIRS
        for corpus, figures in results["agreement"].items()
        if pair in figures and (corpus == "all" or pair == PLOTTED)
    ]
    text = (
        "How often two put the same memory first, and how often that is right. `all` counts every question once.\n\n"
        "![right where fusion and reranker agree](leg_scores.svg)"
    )
    return f"## 1. Agreement\n\n{text}\n\n{table(head, rows)}"


def sure(results: Figures) -> str:
    head = [
        "relevance of the best hit",
        "",
        "put the same first",
        "right where they do",
        "else the one / the other right",
    ]
    rows = [
        [confidence, pair, *_row(figures[pair], pair)]
        for confidence, figures in results["agreement by confidence"].items()
        for pair in PAIRS
    ]
    text = (
        "The same, apart for answers that Trivet itself calls likely (relevance of the best hit from .5 on) and others."
    )
    return f"## 2. Beside the relevance that an answer carries\n\n{text}\n\n{table(head, rows)}"


def _row(figures: Figures, pair: str) -> list[str]:
    one, _, other = pair.partition(" and ")
    apart = f"{_share(figures[f'{one} right where not'])} / {_share(figures[f'{other} right where not'])}"
    return [_share(figures["agree"]), _share(figures["right where they agree"]), apart]


def _share(figures: Figures) -> str:
    if figures["mean"] is None:
        return "-"
    return f"{share(figures['mean'])} [{share(figures['low'])}, {share(figures['high'])}] of {figures['of']}"


def separated(results: Figures) -> str:
    head = ["corpus", "leg", "speaks", "answers it has", "first is right", "right: p10 / p50 / p90",
            "wrong: p10 / p50 / p90", "area within a query", "area over all", "variation"]  # fmt: skip
    rows = [
        [corpus, leg, share(one["spoke"]), share(one["of the answers found"]), share(one["first is right"]["mean"]),
         _quantiles(one["right p10 p50 p90"]), _quantiles(one["wrong p10 p50 p90"]),
         share(one["area within a query"]["mean"] or 0.0), share(one["area over all queries"]),
         share(one["median variation"])]
        for corpus, legs in results["scores"].items()
        for leg, one in legs.items()
    ]  # fmt: skip
    text = (
        "`area` is the chance that what answers scores above what does not: within the list of one question, and over "
        "all questions together, which tells whether a score means the same from one question to the next. "
        "`variation` is the median over questions of the scores' deviation over their mean above the "
        "leg's floor, on which `norm=spread` rests. A reranker reads the first 20 of the fusion."
    )
    return f"## 3. What a score tells\n\n{text}\n\n{table(head, rows)}"


def _quantiles(values: list[float]) -> str:
    return " / ".join(f"{value:.2f}" for value in values)


def long(results: Figures) -> str:
    rows = results["lengths"]
    names = list(rows["answers"]["shares"])
    head = ["first ten of", "median words", *names, *(f"height of wrong, {name}" for name in names)]
    body = [
        [leg, f"{one['median']:.0f}", *(share(value) for value in one["shares"].values()),
         *(_height(one, name) for name in names)]
        for leg, one in rows.items()
    ]  # fmt: skip
    text = (
        "Words of the first ten hits of each leg beside those of the answers, over all corpora; and how high wrong "
        "hits of a length stand in their list, in deviations from its mean: 0 where length plays no part."
    )
    return f"## 4. By length\n\n{text}\n\n{table(head, body)}"


def _height(one: Figures, name: str) -> str:
    value = one.get("deviation of the wrong", {}).get(name)
    return "" if value is None else f"{value:+.2f}"


def plot(agreement: Figures, path: Path) -> None:
    corpora = list(agreement)
    one, _, other = PLOTTED.partition(" and ")
    parts = {
        "they agree": ("right where they agree", "#009E73"),
        f"they differ: {one}": (f"{one} right where not", "#0072B2"),
        f"they differ: {other}": (f"{other} right where not", "#E69F00"),
    }
    figure, axes = plt.subplots(figsize=(9, 4))
    for place, (label, (name, colour)) in enumerate(parts.items()):
        found = [agreement[corpus][PLOTTED][name] for corpus in corpora]
        means = [row["mean"] or 0.0 for row in found]
        reach = [[m - (row["low"] or 0.0) for m, row in zip(means, found, strict=True)],
                 [(row["high"] or 0.0) - m for m, row in zip(means, found, strict=True)]]  # fmt: skip
        places = [index + (place - 1) * 0.27 for index in range(len(corpora))]
        axes.bar(places, means, 0.25, color=colour, label=label, yerr=reach, error_kw={"lw": 0.8})
    axes.set_xticks(range(len(corpora)), corpora)
    axes.set_ylabel("the first is right")
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
