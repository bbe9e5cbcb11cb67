"""Writes docs/results/graph.md and its plots from graph.json.

python benchmarks/graph_report.py docs/results/graph.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from graph_choice import TOLERATED, is_safe, verdict
from graph_evidence import WEIGHTS, arm_name
from graph_plots import strata_gains, weight_curves
from graph_sections import BOTH, Results, fusion, left_out, sources, strata, switch, weights, whole
from graph_tables import chance, interval, share, table
from graph_words import CLOSING, INTRODUCTION

TARGETS = {"hotpotqa": 0.924, "musique": 0.629}


def main() -> None:
    source = Path(sys.argv[1])
    results = json.loads(source.read_text(encoding="utf-8"))
    sections = (in_short, weights, sources, fusion, strata, switch, left_out, whole, manifest)
    text = "\n\n".join([INTRODUCTION.strip(), *(section(results).strip() for section in sections), CLOSING.strip()])
    (source.parent / "graph.md").write_text(text + "\n", encoding="utf-8")
    (source.parent / "graph-weights.svg").write_text(_weights_plot(results), encoding="utf-8")
    (source.parent / "graph-strata.svg").write_text(_strata_plot(results), encoding="utf-8")


def in_short(results: Results) -> str:
    weight = results["manifest"]["default_weight"]
    arm = arm_name(weight, results["manifest"]["constants"]["named"])
    body = []
    for name, corpus in results["corpora"].items():
        row, two = corpus["sweep"][arm], corpus["sweep"]["two legs"]["means"]
        p = results["holm"][f"{weight:g}"][name]["nDCG@10"]
        cells = [f"{share(two[one])} → {share(row['means'][one])}" for one in BOTH]
        body.append(
            [
                name,
                cells[0],
                interval(row["nDCG@10"]),
                cells[1],
                interval(row["recall@10"]),
                chance(p),
                verdict(row, p),
            ]
        )
    head = ["corpus", "nDCG@10", "difference", "recall@10", "difference", "p (Holm)", "in a word"]
    return f"## In short\n\n{table(head, body)}\n\n{_aims(results, arm)}"


def _aims(results: Results, arm: str) -> str:
    lines = []
    for name, aim in TARGETS.items():
        if name in results["corpora"]:
            reached = results["corpora"][name]["sweep"][arm]["means"]["recall@10"]
            lines.append(f"- recall@10 above {share(aim)} on {name}: **{share(reached)}**, {_met(reached > aim)}.")
    rows = {name: corpus["sweep"][arm] for name, corpus in results["corpora"].items()}
    lost = [name for name, row in rows.items() if row["nDCG@10"]["high"] < -TOLERATED]
    unsure = [name for name, row in rows.items() if not is_safe(row)]
    worst = min(rows, key=lambda name: rows[name]["nDCG@10"]["difference"])
    lines.append(
        f"- No corpus loses more than {TOLERATED:g} nDCG@10: {_met(not lost)}. The worst is {worst}, "
        f"{interval(rows[worst]['nDCG@10'])}. "
        + (
            f"So large a loss cannot be ruled out (the interval reaches below it) on {', '.join(unsure)}."
            if unsure
            else "On every corpus the whole interval lies above it, so a larger loss is ruled out."
        )
    )
    return "What was asked of it before it was built:\n\n" + "\n".join(lines)


def _met(yes: bool) -> str:
    return "met" if yes else "**not met**"


def manifest(results: Results) -> str:
    measured = results["manifest"]["measured"]
    codes = {one["code_sha256"][:12] for one in measured.values()}
    minutes = sum(one["seconds"] for one in measured.values()) / 60
    queries = {name: f"{one['queries']:,}" for name, one in measured.items()}
    about = results["manifest"]
    commits = sorted({one.get("commit", about["commit"])[:12] for one in measured.values()})
    text = (
        f"Commit {', '.join(commits)}, code {', '.join(sorted(codes))} (SHA-256 over graph, legs and fusion), "
        f"{about['date']}, {minutes:.0f} minutes on one of two shared cores. {about['resamples']:,} resamples, seed "
        f"{about['seed']}. Versions, constants and checksums of the data are in `graph.json`."
    )
    return f"## 8. How it was measured\n\n{table(['', *queries], [['queries', *queries.values()]])}\n\n{text}"


def _weights_plot(results: Results) -> str:
    named = results["manifest"]["constants"]["named"]
    curves = {
        name: [(float(w), corpus["sweep"][arm_name(w, named)]) for w in WEIGHTS]
        for name, corpus in results["corpora"].items()
    }
    return weight_curves(curves, TOLERATED, results["manifest"]["default_weight"])


def _strata_plot(results: Results) -> str:
    shown = {name: list(corpus["strata"].items()) for name, corpus in results["corpora"].items() if "graphs" in corpus}
    return strata_gains(shown)


if __name__ == "__main__":
    main()
