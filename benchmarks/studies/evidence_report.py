"""Writes docs/results/evidence.md and its plots from evidence.json.

python benchmarks/studies/evidence_report.py docs/results/evidence.json
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt

Corpora = Mapping[str, Mapping[str, Mapping[str, Any]]]

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7F7F7F", "#000000")

INTRODUCTION = """# Evidence for the retrieval defaults

nDCG@10 unless said otherwise; depth 50, k1 = 1.2 and b = 0.75 unless named. `+` and `-` mark a difference whose 95 %
paired bootstrap interval lies above or below zero, against the first row of the table unless said otherwise. `mean` is
over the seven public corpora; `house` is our own small set and took no part in any choice. Made by

    TRIVET_DATA=... python benchmarks/studies/evidence.py
    python benchmarks/studies/evidence_report.py docs/results/evidence.json

All vectors are those of the embedder `{embedder}`. The data is not part of this repository; `evidence.json` holds its
checksums, the versions and, for each corpus, the commit that measured it.
"""


def main() -> None:
    source = Path(sys.argv[1])
    results = json.loads(source.read_text(encoding="utf-8"))
    corpora: Corpora = results["corpora"]
    folder = source.parent
    introduction = INTRODUCTION.format(embedder=results["manifest"]["embedder"])
    sections = [introduction, *(_section(corpora, *one) for one in SECTIONS), _left_out(results["left_out"])]
    (folder / "evidence.md").write_text("\n".join(sections), encoding="utf-8")
    _plot_methods(corpora, folder / "methods.svg")
    _plot_curve(
        corpora,
        "joint",
        r"convex\(norm=zscore, lexical=[\d.]+, dense=([\d.]+)\)",
        "weight of the dense leg",
        folder / "weights.svg",
    )
    _plot_curve(
        corpora,
        "choice",
        r"convex\(norm=spread, lexical=1, dense=(\d+)\) \| bm25\(k1=0.9, b=0.4\) \| depth\(50\)",
        "weight of the dense leg (lexical = 1), norm=spread",
        folder / "spread.svg",
    )
    _plot_curve(corpora, "depth", r"convex\(norm=zscore\) \| depth\((\d+)\)", "depth of each leg", folder / "depth.svg")


PRIOR_TEXT = (
    "Importances drawn honestly (what is asked for tends to be rated higher), at random, or adversarially; marks are "
    "against the fusion by z-score without a prior."
)
VECTORS_TEXT = "Stored float16 searched exactly, the product's shortlist by sign bits, and one byte a dimension."
METHODS_TEXT = "![methods](methods.svg)\n\nMarks are against `rrf(k=60)`. Strata are in the JSON."
BASELINE_TEXT = "`lexical leg` against plain bm25s; `default` against dense alone."

SECTIONS: Sequence[tuple[str, str, str]] = (
    ("1. RRF against every convex variant", "methods", METHODS_TEXT),
    ("2. k, per-leg k and weights, jointly", "joint", "![weights](weights.svg)"),
    ("3. Depth of each leg", "depth", "![depth](depth.svg)"),
    ("4. The exact-match bonus", "bonus", "The whole read path, with the default fusion."),
    ("5. The importance prior", "prior", PRIOR_TEXT),
    ("6. All words first, or any", "match", ""),
    ("7. Passages against truncation", "passages", ""),
    ("8. Vectors and search", "vectors", VECTORS_TEXT),
    ("9. Against plain baselines", "baseline", BASELINE_TEXT),
    ("10. BM25's constants", "bm25", ""),
    ("11. Candidates for the default", "choice", "![spread](spread.svg)"),
)


def _section(corpora: Corpora, title: str, question: str, text: str) -> str:
    names = list(corpora)
    rows = [row for row, values in corpora[names[0]][question].items() if "nDCG@10" in values]
    head = f"| | {' | '.join(names)} | mean |\n|---|{'---|' * (len(names) + 1)}"
    body = "\n".join(_row(corpora, names, question, row) for row in rows)
    return f"## {title}\n\n{text}\n\n{head}\n{body}\n"


def _row(corpora: Corpora, names: Sequence[str], question: str, row: str) -> str:
    cells = [_cell(corpora[name][question].get(row, {})) for name in names]
    public = [corpora[name][question][row]["nDCG@10"] for name in names if name != "house"]
    return f"| `{row.replace('|', chr(92) + '|')}` | {' | '.join(cells)} | {fmean(public):.4f} |"


def _cell(values: Mapping[str, float]) -> str:
    mark = "+" if values.get("low", 0) > 0 else "-" if values.get("high", 0) < 0 else ""
    return f"{values.get('nDCG@10', float('nan')):.4f}{mark}"


def _left_out(rows: Mapping[str, Mapping[str, Any]]) -> str:
    titles = ("left out", "chosen on the others", "nDCG@10 here", "against rrf(k=60)", "against lexical")
    columns = (*titles, "against dense", "best here")
    head = f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"
    lines = [head]
    for name, row in rows.items():
        here = row["here"]
        chosen = row["chosen on the others"].replace("|", "\\|")
        cells = [f"`{chosen}`", f"{here['nDCG@10']:.4f}", _interval(here, ""), _interval(here, " against lexical")]
        cells += [_interval(here, " against dense"), f"{row['best nDCG@10 here']:.4f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    text = "For each corpus, the candidate of section 11 with the best mean on the others."
    return f"## 12. Leave one corpus out\n\n{text}\n\n" + "\n".join(lines) + "\n"


def _interval(values: Mapping[str, float], suffix: str) -> str:
    low, high = values[f"low{suffix}"], values[f"high{suffix}"]
    return f"{values[f'difference{suffix}']:+.3f} ({low:+.3f} to {high:+.3f})"


def _plot_methods(corpora: Corpora, path: Path) -> None:
    names = list(corpora)
    rows = [row for row in corpora[names[0]]["methods"] if row != "by stratum"]
    figure, axes = plt.subplots(figsize=(10, 4.5))
    for index, row in enumerate(rows):
        places = [place + index * 0.09 for place in range(len(names))]
        axes.bar(
            places,
            [corpora[name]["methods"][row]["nDCG@10"] for name in names],
            0.085,
            label=row,
            color=COLOURS[index % len(COLOURS)],
            hatch="//" if index >= len(COLOURS) else None,
        )
    axes.set_xticks([place + 0.36 for place in range(len(names))], names)
    axes.set_ylabel("nDCG@10")
    axes.set_title("Fusion methods by corpus")
    axes.legend(fontsize=7, ncol=3, loc="upper center", bbox_to_anchor=(0.5, -0.08))
    _save(figure, path)


def _plot_curve(corpora: Corpora, question: str, pattern: str, label: str, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4))
    for index, (name, results) in enumerate(corpora.items()):
        points = sorted(_points(results[question].items(), pattern))
        best = max(value for _, value in points)
        axes.plot([x for x, _ in points], [value - best for _, value in points], "o-", label=name, color=COLOURS[index])
    axes.set_xlabel(label)
    axes.set_ylabel("nDCG@10 below the best of its curve")
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    _save(figure, path)


def _points(rows: Iterable[tuple[str, Mapping[str, float]]], pattern: str) -> Iterable[tuple[float, float]]:
    for row, values in rows:
        if match := re.fullmatch(pattern, row):
            yield float(match[1]), values["nDCG@10"]


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
