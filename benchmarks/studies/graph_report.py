"""Write docs/results/graph.md from graph.json.

python benchmarks/studies/graph_report.py docs/results/graph.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from graph_evidence import HOPS, NAMED, NORMS, TOLERATED, WEIGHT, WEIGHTS, arm_name, verdict
from tables import interval, marked, share, signed, table

INTRODUCTION = """
# What the graph leg is worth, and where

**Question.** What does the graph leg add to words and vectors, and where?

**Answer.** It gains nDCG@10 on questions over several passages and on our own notes:
{wins}.
{losses} Weight {weight:g} has the best mean. The interval still allows a
loss above {tolerated:g} on {unsure}.

**Method.** Three legs (`norm.graph=raw, graph={weight:g}`) against two with the shipped weights.
Differences are paired by query, with 95 % bootstrap intervals; ▲ and ▼ mark an interval above or
below zero. A gain counts if its randomization test has p < .05 after Holm's correction.
[evidence.md](evidence.md) compares all weights and measures whole recalls.

    TRIVET_DATA=... {command}
    python benchmarks/studies/graph_report.py docs/results/graph.json

At most {most} questions per collection, drawn by a hash of their ids; embedder
`{embedder}`; {date}, commit {commits}. [graph.json](graph.json) holds
all strata, versions and checksums.
"""

SETTINGS = """
Mean nDCG@10 over all collections against two legs, and three collections that decided. `graph only`
is the order of the walk alone. Raw scores are near zero unless the query names something specific
and the best hits agree; a norm per query gives every list the same height, here with its best
weight. `named=0` walks at full strength from anything the query names (0.3 ships). *Worse on*
counts collections.
"""

STRATA = """
recall@10 by the rank that vectors alone give the relevant passage farthest from the query. *In /
out* counts relevant passages that the graph brings into the first ten and pushes out.
"""

CLOSING = """
[Decision 0010](../decisions/0010-graph-leg.md) compares rules with triples from GPT-3.5. Fusion by
rank cost chat and code up to .1; other constants of the walk hardly changed the mean.
"""

Results = Mapping[str, Any]
# The first gains most; the others lose first at high weights and with norms.
DECIDING = ("musique", "scifact", "cosqa")
FARTHEST = "farthest hop "
SHOWN_WEIGHTS = WEIGHTS[1:-1]
SHOWN_NAMED = NAMED[:1]
RANKS = ("in the dense top 10", "at dense rank 11 to 50", "below dense rank 50")


def main() -> None:
    source = Path(sys.argv[1])
    results = json.loads(source.read_text(encoding="utf-8"))
    sections = (introduction, settings, strata)
    text = "\n\n".join([*(section(results).strip() for section in sections), CLOSING.strip()])
    source.with_suffix(".md").write_text(text + "\n", encoding="utf-8")


def introduction(results: Results) -> str:
    about = results["manifest"]
    measured = about["measured"].values()
    verdicts, body = {}, []
    for name, corpus in results["corpora"].items():
        row, two = corpus["sweep"][arm_name(WEIGHT)], corpus["sweep"]["two legs"]["means"]
        verdicts[name] = verdict(row, results["holm"][name]["nDCG@10"])
        levels = f"{share(two['nDCG@10'])} → {share(row['means']['nDCG@10'])}"
        body.append(
            [
                name,
                share(corpus["spoke"]),
                levels,
                interval(row["nDCG@10"]),
            ]
        )
    gains = {
        name: corpus["sweep"][arm_name(WEIGHT)]["nDCG@10"]
        for name, corpus in results["corpora"].items()
    }
    losses = [name for name, one in gains.items() if one["high"] < 0]
    head = ["collection", "queries with graph hits", "nDCG@10", "difference"]
    text = INTRODUCTION.format(
        wins=", ".join(
            f"{name} {signed(gains[name]['difference'])}"
            for name in gains
            if verdicts[name] == "wins"
        ),
        losses=f"Significant losses: {', '.join(losses)}."
        if losses
        else "No collection loses significantly.",
        unsure=", ".join(name for name, one in verdicts.items() if "not ruled out" in one),
        tolerated=TOLERATED,
        weight=WEIGHT,
        command=about["command"],
        embedder=about["embedder"],
        most=max(one["queries"] for one in measured),
        date=about["date"],
        commits=", ".join(sorted({one["commit"][:12] for one in measured})),
    )
    return f"{text.strip()}\n\n{table(head, body)}"


def settings(results: Results) -> str:
    arms = ["graph only", *(arm_name(w) for w in SHOWN_WEIGHTS)]
    for norm, norm_weights in NORMS.items():
        tried = [f"norm.graph={norm} graph={w:g}" for w in norm_weights]
        arms.append(max(tried, key=lambda arm: _mean(results, arm)))
    arms += [f"named={named:g}" for named in SHOWN_NAMED]
    body = []
    for arm in arms:
        found = {
            name: corpus["sweep"][arm]["nDCG@10"] for name, corpus in results["corpora"].items()
        }
        worse = [name for name, one in found.items() if one["high"] < 0]
        body.append(
            [f"`{arm}`", signed(_mean(results, arm)), *(marked(found[name]) for name in DECIDING)]
        )
        body[-1].append(str(len(worse)))
    shown = table(["", "mean", *DECIDING, "worse on"], body)
    return f"## 1. Weight and scale\n\n{SETTINGS.strip()}\n\n{shown}"


def _mean(results: Results, arm: str) -> float:
    return fmean(
        corpus["sweep"][arm]["nDCG@10"]["difference"] for corpus in results["corpora"].values()
    )


def strata(results: Results) -> str:
    head = ["collection", "stratum", "queries", "recall@10", "difference", "in / out"]
    body = [
        [
            name,
            stratum.removeprefix(FARTHEST),
            str(row["queries"]),
            f"{share(row['recall@10']['base'])} → {share(row['recall@10']['candidate'])}",
            interval(row["recall@10"]),
            f"{row['brought in']} / {row['pushed out']}",
        ]
        for name in HOPS
        for stratum, row in results["corpora"][name]["strata"].items()
        if stratum.endswith(RANKS)
    ]
    parts = [f"## 2. Where it helps\n\n{STRATA.strip()}\n\n{table(head, body)}"]
    for name, corpus in results["corpora"].items():
        if "links" in corpus:
            gains = " and ".join(interval(row["nDCG@10"]) for row in corpus["links"].values())
            parts.append(
                f"With and without the links between memories, {name} gains\n{gains} nDCG@10."
            )
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()
