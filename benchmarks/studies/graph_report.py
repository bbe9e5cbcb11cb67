"""Writes docs/results/graph.md and its plots from graph.json.

python benchmarks/studies/graph_report.py docs/results/graph.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graph_evidence import HOPS, NAMED, NORMS, TOLERATED, WEIGHT, WEIGHTS, arm_name, verdict
from graph_plots import strata_gains, weight_curves
from tables import by_corpus, chance, interval, share, table

INTRODUCTION = """
# What is the graph leg worth, and where?

Two legs are words and vectors with the shipped weights; three legs add the walk over the concept graph
(`norm.graph=raw, graph={weight:g}` ships). Differences are paired by query, with 95 % bootstrap intervals in brackets;
▲ and ▼ mark an interval that lies above or below zero. `p (Holm)` is of the randomisation test, corrected over the
corpora or strata of its table. `mixed/dev`, `mixed-dialogue`, `mixed-passages` and `sessions` are stores of mixed or
great length ([decision 0031](../decisions/0031-fair-to-length.md)). The weight is chosen together with those of the
other legs, with collections left out, in [evidence.md](evidence.md), whose last section has the same through whole
recalls. Made by

    TRIVET_DATA=... {command}
    python benchmarks/studies/graph_report.py docs/results/graph.json

Embedder {embedder}; at most {most} questions of each, drawn by a hash of their ids; {date}, commits {commits},
{minutes:.0f} minutes on one of two shared cores. Versions and checksums of the data are in `graph.json`.
"""

WEIGHT_TEXT = """
`graph only` is the order of the walk alone; a query that names no concept then gets nothing. The walk starts from the
two legs' hits, so this is not a graph without them: it says how well the walk orders what it reaches.
"""

NORMS_TEXT = """
What arrives by the walk is large where the query names something specific and the best hits agree, and next to
nothing elsewhere. `raw` keeps that; a norm by query gives every list the same height. `named` is the weight of all that
a query names at which the walk has half its strength: `named=0` gives full strength to anything named (0.3 ships).
"""

STRATA = """
MuSiQue's strata are the number of hops, HotpotQA's its types of question. The farthest hop of a query is its relevant
passage with the lowest cosine to it. `missed by two legs`: relevant passages not among the first ten of two legs;
`brought in` and `pushed out`: those that three legs put there or push out; `in neither leg`: relevant passages that
neither leg returned at all, among its 50.
"""

CLOSING = """
## 4. What was measured before and not again

With all-MiniLM-L6-v2 ([decision 0010](../decisions/0010-graph-leg.md)): the walk's constants one at a time (14 of 20
settings within .002 of the default in the mean), fusion by rank (chat and code lose up to a tenth), a walk where
nothing is named (no gain), and a graph from triples of GPT-3.5 instead of the rules (HotpotQA .870 against .875,
MuSiQue .662 against .670). No answer to these would change what ships.
"""

Results = Mapping[str, Any]
BOTH = ("nDCG@10", "recall@10")


def main() -> None:
    source = Path(sys.argv[1])
    results = json.loads(source.read_text(encoding="utf-8"))
    sections = (introduction, in_short, weights, norms, strata)
    text = "\n\n".join([*(section(results).strip() for section in sections), CLOSING.strip()])
    (source.parent / "graph.md").write_text(text + "\n", encoding="utf-8")
    curves = {
        name: [(float(w), corpus["sweep"][arm_name(w)]) for w in WEIGHTS] for name, corpus in results["corpora"].items()
    }
    (source.parent / "graph-weights.svg").write_text(weight_curves(curves, TOLERATED, WEIGHT), encoding="utf-8")
    shown = {name: list(results["corpora"][name]["strata"].items()) for name in HOPS if name in results["corpora"]}
    (source.parent / "graph-strata.svg").write_text(strata_gains(shown), encoding="utf-8")


def introduction(results: Results) -> str:
    about = results["manifest"]
    measured = about["measured"].values()
    return INTRODUCTION.format(
        weight=WEIGHT,
        command=about["command"],
        embedder=about["embedder"],
        most=max(one["queries"] for one in measured),
        date=about["date"],
        commits=", ".join(sorted({one["commit"][:12] for one in measured})),
        minutes=sum(one["seconds"] for one in measured) / 60,
    )


def in_short(results: Results) -> str:
    body = []
    for name, corpus in results["corpora"].items():
        row, two = corpus["sweep"][arm_name(WEIGHT)], corpus["sweep"]["two legs"]["means"]
        p = results["holm"][name]["nDCG@10"]
        cells = [f"{share(two[one])} → {share(row['means'][one])}" for one in BOTH]
        differences = [interval(row[one]) for one in BOTH]
        queries = str(corpus["strata"]["all"]["queries"])
        body.append([name, queries, share(corpus["spoke"]), cells[0], differences[0], cells[1], differences[1]])
        body[-1] += [chance(p), verdict(row, p)]
    head = ["corpus", "queries", "share it speaks to", "nDCG@10", "difference", "recall@10", "difference", "p (Holm)"]
    return f"## In short\n\n{table([*head, 'in a word'], body)}"


def weights(results: Results) -> str:
    arms = {"graph only": "graph only"} | {arm_name(w): arm_name(w) for w in WEIGHTS}
    parts = [f"## 1. The weight\n\n{WEIGHT_TEXT.strip()}\n\n![gain by weight](graph-weights.svg)"]
    parts += [f"{one}, against two legs:\n\n{by_corpus(_sweeps(results), arms, one, full=False)}" for one in BOTH]
    return "\n\n".join(parts)


def norms(results: Results) -> str:
    arms = [arm_name(WEIGHT), *(f"norm.graph={norm} graph={w:g}" for norm, weights in NORMS.items() for w in weights)]
    arms += [f"named={named:g}" for named in NAMED]
    shown = by_corpus(_sweeps(results), {arm: arm for arm in arms}, "nDCG@10", full=False)
    return (
        f"## 2. Its scores as they are, and the switch\n\n{NORMS_TEXT.strip()}\n\nnDCG@10, against two legs:\n\n{shown}"
    )


def strata(results: Results) -> str:
    parts = [f"## 3. Where it helps\n\n{STRATA.strip()}\n\n![gain by stratum](graph-strata.svg)"]
    for name, corpus in results["corpora"].items():
        if len(corpus["strata"]) > 1:
            parts.append(f"### {name}\n\n{_strata(corpus['strata'])}")
        if "links" in corpus:
            body = [[arm, *(interval(corpus["links"][arm][one]) for one in BOTH)] for arm in corpus["links"]]
            parts.append(f"With and without the links between its memories:\n\n{table(['', *BOTH], body)}")
    return "\n\n".join(parts)


def _strata(rows: Results) -> str:
    head = ["queries", "recall@10", "difference", "nDCG@10", "p (Holm)", "relevant", "missed by two legs", "brought in"]
    body = [
        [
            name,
            str(row["queries"]),
            f"{share(row['recall@10']['base'])} → {share(row['recall@10']['candidate'])}",
            interval(row["recall@10"]),
            interval(row["nDCG@10"]),
            chance(row["recall@10"]["corrected_p"]),
            *(str(row[one]) for one in ("relevant", "missed by two legs", "brought in", "pushed out", "out of pool")),
            str(row["from nowhere"]),
        ]
        for name, row in rows.items()
    ]
    return table(["stratum", *head, "pushed out", "in neither leg", "of these brought in"], body)


def _sweeps(results: Results) -> dict[str, Any]:
    return {name: corpus["sweep"] for name, corpus in results["corpora"].items()}


if __name__ == "__main__":
    main()
