"""Writes docs/results/trained.md and its plot from trained.json.

python benchmarks/studies/trained_report.py docs/results/trained.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt
from trained import BASE, CORPORA, table

PLOTTED = {
    "bundled embedder": "#0072B2",
    "bundled embedder, rerank fast": "#E69F00",
    "bundled embedder, rerank best": "#009E73",
}
INTRODUCTION = """# What the trained models are worth

nDCG@10 / recall@5 of whole recalls with the shipped int8 files, each arm against the default recipe on the stock
embedder (all-MiniLM-L6-v2) over the same queries. `+` and `-` mark a difference whose 95 % paired bootstrap interval
lies above or below zero; they are not corrected for the number of arms. The mean difference is over the seven public
corpora, each counting the same; `house` is our own small set. Made by

    TRIVET_DATA=... python benchmarks/studies/trained.py --kept KEPT{options}
    python benchmarks/studies/trained_report.py docs/results/trained.json

The rerankers were asked some of the queries only, drawn by a hash of their ids (all of LoCoMo's, in a run of its own
without --queries); a row says how many, and what the base has on them. The weights of `learned` were fitted on these
very corpora, so its row flatters it (0016 has it left out); it and the expansion by rule were removed afterwards.
HotpotQA and MuSiQue share passages (never a query or a gold passage) with the training sets and are not zero-shot. The
[model cards](../../src/trivet/models) say what was trained on, [0016](../decisions/0016-trained-models.md) why so.
"""


def main() -> None:
    source = Path(sys.argv[1])
    results = json.loads(source.read_text(encoding="utf-8"))
    asked = results["queries a reranker was asked"]
    introduction = INTRODUCTION.replace("{options}", f" --queries {asked}" if asked else "")
    sections = [
        introduction,
        table(results),
        "![Gains by corpus](trained.svg)\n",
        "## Differences",
        differences(results),
    ]
    (source.parent / "trained.md").write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    _plot(results, source.parent / "trained.svg")


def differences(results: Mapping[str, Any]) -> str:
    lines = ["| corpus | arm | queries | nDCG@10 | recall@5 |", "|---|---|---|---|---|"]
    for corpus in results["arms"][BASE]:
        for arm, rows in results["arms"].items():
            if arm != BASE and corpus in rows:
                gains = (_interval(rows[corpus][f"{name} difference"]) for name in ("nDCG@10", "recall@5"))
                lines.append(f"| {corpus} | {arm} | {rows[corpus]['queries']} | {' | '.join(gains)} |")
    return "\n".join(lines)


def _interval(values: list[float]) -> str:
    difference, low, high = values
    return f"{difference:+.4f} [{low:+.4f}, {high:+.4f}]"


def _plot(results: Mapping[str, Any], path: Path) -> None:
    corpora = [name for name in (*CORPORA, "house") if name in results["arms"][BASE]]
    figure, axes = plt.subplots(figsize=(8, 4))
    for place, (arm, colour) in enumerate(PLOTTED.items()):
        rows = [results["arms"][arm][corpus]["nDCG@10 difference"] for corpus in corpora]
        at = [row + 0.2 * (place - 1) for row in range(len(corpora))]
        gains = [row[0] for row in rows]
        errors = [[row[0] - row[1] for row in rows], [row[2] - row[0] for row in rows]]
        axes.errorbar(at, gains, yerr=errors, fmt="o", color=colour, capsize=2, label=arm)
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set_xticks(range(len(corpora)), corpora)
    axes.set_ylabel("nDCG@10 gained over the stock embedder")
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
