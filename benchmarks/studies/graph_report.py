"""Writes docs/results/graph.md and its plots from graph.json.

python benchmarks/studies/graph_report.py docs/results/graph.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from graph_arms import EVERYWHERE
from graph_evidence import (
    CONSTANTS,
    MASS_WEIGHTS,
    NAMED,
    NORMS,
    RANK_WEIGHTS,
    SOURCE_WEIGHTS,
    SOURCES,
    TOLERATED,
    WEIGHTS,
    arm_name,
    chosen_on,
    is_safe,
    is_unsure,
    mean_gain,
    verdict,
)
from graph_plots import strata_gains, weight_curves
from tables import by_corpus, chance, interval, share, signed, table

INTRODUCTION = """
# Does the graph leg earn its place?

Two legs are words and vectors, fused as by default (`convex(norm=spread, lexical=1, dense=8)`, `bm25(k1=0.9, b=0.4)`,
`depth(50)`); three legs add the walk over the concept graph (`norm.graph=raw, graph=W`). Differences are paired by
query, with 95 % bootstrap intervals in brackets; ▲ and ▼ mark an interval that lies above or below zero. `p (Holm)`
is of the randomisation test, corrected over the corpora or strata of its table. `all@10` is the share of queries with
every relevant passage among the first ten. Made by

    TRIVET_DATA=... python benchmarks/studies/graph_evidence.py
    python benchmarks/studies/graph_report.py docs/results/graph.json
"""

SWEEP = """
`graph only` is the order of the walk alone; a query that names no concept then gets nothing. Note that the walk
starts from the two legs' hits, so this is not a graph without them: it says how well the walk orders what it reaches.
"""

GRAPHS = """
HotpotQA and MuSiQue come with triples that GPT-3.5 extracted from their very passages (those of HippoRAG). They stand
in for a language model here and enter through the store's own door. `triples` keeps nothing of the rules but what a
passage is about, its title; without it no passage would be about anything, and the comparison would be of titles, not
of extraction. `both` has the mentions of either. A triple counts by the concepts it names; its relation is not used
by the walk.
"""

FUSION = """
What arrives by the walk is large where the query names something specific and the best hits agree, and next to
nothing elsewhere. `raw` keeps that; a norm by query gives every list the same height. At small weights that matters
little, and the best allowed weight of `spread` is not far behind; at larger ones the norms tip over, and lose on
chat, code and science while they still gain on the multi-hop sets. `mass` is what arrived itself instead of its
square root.
"""

STRATA = """
Two legs against three at the default weight. MuSiQue's strata are the number of hops, HotpotQA's its types of
question. The farthest hop of a query is its relevant passage with the lowest cosine to it. `missed by two legs`:
relevant passages not among the first ten of two legs; `brought in` and `pushed out`: those that three legs put there
or push out; `in neither leg`: relevant passages that neither leg returned at all, among its 50.
"""

SWITCH = """
The leg is silent where a query names no concept, and quiet where it names common ones: at a weight of `named` of all
that it names, the walk has half its strength. `named=0` gives it full strength for anything named; `always` also
walks, from the hits alone, where nothing is named.
"""

LEFT_OUT = """
For each corpus, the arm with the largest mean gain in nDCG@10 over the other seven among those that harm none of
them: an arm harms a corpus if its interval lies wholly below -0.005. The last of the tables by corpus has the
stricter rule that on each of the others the interval must lie wholly above -0.005.
"""

WHOLE = """
The arms above stop at the fusion. Through the whole read path, with the exact-match bonus, the prior, folding of
duplicates and links, at the default weight:
"""

RECOMMENDED = """
The default is 8 and `named=0.3`. The rule itself goes further; the default departs from it on the side of caution,
and after seeing these figures: what the rule gains beyond 8 is small and comes from the multi-hop sets, while the
corpora that have nothing to win begin to lean down. Chosen together with the weight, the switch was once turned off
(`named=0`) for cosqa, which is the largest loss of any fold: the switch stays.
"""

CLOSING = """
## 9. What to keep in mind

- It wins where a question chains passages through names (hotpotqa, musique) and on our own notes (house), most where
  the passage two steps away is unlike the question. House was written by us, has tags on every memory and links
  between some.
- It is neutral on chat, also on its multi-hop questions (locomo: the speakers are everywhere, so nothing specific is
  named; lihua), on scientific abstracts and on code. scifact leans down and has too few queries to rule out a loss of
  more than 0.005 at any weight, even 1.
- At the default it is shown to hurt no corpus. It does hurt with a norm by query or fusion by rank at weights that
  gain as much on the multi-hop sets (section 3), and on code with full strength for every name at larger weights
  (section 6).
- As a ranking of its own it is poor everywhere but on the multi-hop sets: it is a third leg, not a first.
- Triples of a language model add little to the rules (section 2).
- Only weight and switch were chosen with each corpus left out. The rules of extraction and the other constants of the
  walk were set while looking at these corpora; section 5 shows how little they matter one at a time.
- Both large gains are on sets built over Wikipedia so that passages connect through a shared entity, which is what a
  graph of names follows.
"""


Results = Mapping[str, Any]
BOTH = ("nDCG@10", "recall@10")


def weights(results: Results) -> str:
    named = results["manifest"]["constants"]["named"]
    arms = {"graph only": "graph only"} | {f"graph={w:g}": arm_name(w, named) for w in WEIGHTS}
    sweeps = {name: corpus["sweep"] for name, corpus in results["corpora"].items()}
    parts = [f"## 1. The weight\n\n{SWEEP.strip()}\n\n![gain by weight](graph-weights.svg)"]
    parts += [f"{measure}, against two legs:\n\n{by_corpus(sweeps, arms, measure)}" for measure in BOTH]
    return "\n\n".join(parts)


def sources(results: Results) -> str:
    parts = [f"## 2. Which graph\n\n{GRAPHS.strip()}"]
    for name, corpus in results["corpora"].items():
        if "graphs" in corpus:
            parts += [f"### {name}", _sizes(corpus["graphs"]["about"]), _sources(corpus["graphs"])]
    return "\n\n".join(parts)


def _sizes(about: Results) -> str:
    names = ("mentions", "concepts", "shared concepts")
    body = [
        [source, *(f"{about[source][one]:,}" for one in names), share(about[source]["spoke"])] for source in SOURCES
    ]
    counts = ", ".join(f"{count:,} {reason}" for reason, count in about["both"]["triples"].items() if count)
    return f"{table(['graph from', *names, 'share of queries it speaks to'], body)}\n\nTriples: {counts}."


def _sources(graphs: Results) -> str:
    body = []
    for rest in ("graph only", *(f"graph={w:g}" for w in SOURCE_WEIGHTS)):
        for source in SOURCES:
            row = graphs["against two legs"][f"{source} {rest}"]
            beside = graphs["against the rules"].get(f"{source} {rest}")
            cells = [share(row["means"]["nDCG@10"]), share(row["means"]["recall@10"]), share(row["means"]["all@10"])]
            cells += [interval(row["recall@10"]), *(interval(beside[one]) if beside else "" for one in BOTH)]
            body.append([f"`{rest}`", source, *cells])
    head = ["", "graph from", "nDCG@10", "recall@10", "all@10", "recall@10 against two legs", "nDCG@10 against rules"]
    return table([*head, "recall@10 against rules"], body)


def fusion(results: Results) -> str:
    tables = {name: corpus["fusion"] for name, corpus in results["corpora"].items()}
    arms = [f"norm.graph={norm} graph={w:g}" for norm, weights in NORMS.items() for w in weights]
    arms += [f"mass graph={w:g}" for w in MASS_WEIGHTS]
    ranks = [f"rrf(k={k}) graph={w:g}" for k in (60, 10) for w in RANK_WEIGHTS]
    by_score = by_corpus(tables, {arm: arm for arm in arms}, "nDCG@10", full=False)
    by_rank = by_corpus(tables, {arm: arm for arm in ranks}, "nDCG@10")
    recall = by_corpus(tables, {arm: arm for arm in ranks}, "recall@10")
    two = by_corpus(tables, {f"rrf(k={k}) two legs": f"rrf(k={k}) two legs" for k in (60, 10)}, "nDCG@10", full=False)
    parts = [
        f"## 3. By score and by rank\n\n{FUSION.strip()}",
        _best_of_norms(tables),
        f"Every setting, nDCG@10 against two legs fused by score:\n\n{by_score}",
        f"By rank, nDCG@10 against the same fusion by rank of two legs:\n\n{by_rank}",
        f"The same in recall@10:\n\n{recall}",
        f"Fusion by rank of two legs against two legs by score, nDCG@10:\n\n{two}",
    ]
    return "\n\n".join(parts)


def _best_of_norms(tables: Mapping[str, Results]) -> str:
    """Each norm at the weight where it does best under the rule of section 6."""
    body = []
    for label, arms in _families().items():
        arm = chosen_on(tables, list(tables), arms)
        if arm is None:
            body.append([f"`{label}`", "none: every weight harms a corpus", "", ""])
            continue
        worst = min(tables, key=lambda name: tables[name][arm]["nDCG@10"]["difference"])
        figures = interval(tables[worst][arm]["nDCG@10"])
        body.append(
            [f"`{label}`", arm.rpartition("=")[2], signed(mean_gain(tables, list(tables), arm)), f"{worst} {figures}"]
        )
    return table(["the graph's scores as", "best weight that harms none", "mean gain in nDCG@10", "worst corpus"], body)


def _families() -> dict[str, list[str]]:
    norms = {
        f"norm.graph={norm}": [f"norm.graph={norm} graph={w:g}" for w in weights] for norm, weights in NORMS.items()
    }
    return norms | {"raw, what arrived without the root": [f"mass graph={w:g}" for w in MASS_WEIGHTS]}


def strata(results: Results) -> str:
    parts = [f"## 4. Where it helps\n\n{STRATA.strip()}\n\n![gain by stratum](graph-strata.svg)"]
    for name, corpus in results["corpora"].items():
        if len(corpus["strata"]) > 1:
            parts.append(f"### {name}\n\n{_strata(corpus['strata'])}")
        if "links" in corpus:
            parts.append(_links(corpus["links"]))
    return "\n\n".join(parts)


def _links(rows: Results) -> str:
    body = [[arm, *(interval(rows[arm][one]) for one in BOTH)] for arm in rows]
    return f"With and without the links between its memories, against two legs:\n\n{table(['', *BOTH], body)}"


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


def switch(results: Results) -> str:
    sweeps = {name: corpus["sweep"] | corpus["switch"]["arms"] for name, corpus in results["corpora"].items()}
    weight = results["manifest"]["default_weight"]
    arms = {f"named={named:g}": arm_name(weight, named) for named in NAMED}
    arms |= {"always": f"graph={weight:g} {EVERYWHERE}"}
    spoke = table(
        ["", *results["corpora"]],
        [
            [
                "share of queries that name a concept",
                *(share(one["switch"]["spoke"]["named anything"]) for one in results["corpora"].values()),
            ]
        ],
    )
    tables = {name: corpus["constants"] for name, corpus in results["corpora"].items()}
    settings = {f"{name}={value:g}" for name, values in CONSTANTS.items() for value in values}
    shown = {arm: arm for arm in next(iter(tables.values())) if arm in settings}
    parts = [
        f"## 5. The switch, and the walk's constants\n\n{SWITCH.strip()}",
        spoke,
        f"nDCG@10 against two legs, weight {weight:g}:\n\n{by_corpus(sweeps, arms, 'nDCG@10')}",
        f"recall@10:\n\n{by_corpus(sweeps, arms, 'recall@10')}",
        f"`always` against two legs where the query names nothing known:\n\n{_where_nothing_is_named(results)}",
        f"One constant at a time, nDCG@10 against the default constants ({_defaults(results)}):",
        by_corpus(tables, shown, "nDCG@10", full=False),
        _flatness(tables, shown),
    ]
    return "\n\n".join(parts)


def _where_nothing_is_named(results: Results) -> str:
    body = [
        [name, str(row["queries"]), interval(row["nDCG@10"]), interval(row["recall@10"])]
        for name, corpus in results["corpora"].items()
        if (row := corpus["switch"]["by naming"].get("names nothing"))
    ]
    return table(["corpus", "queries that name nothing", "nDCG@10", "recall@10"], body)


def _defaults(results: Results) -> str:
    return ", ".join(f"{name} {results['manifest']['constants'][name]:g}" for name in CONSTANTS)


def _flatness(tables: Mapping[str, Results], arms: Mapping[str, str]) -> str:
    means = {arm: fmean(one[arm]["nDCG@10"]["difference"] for one in tables.values()) for arm in arms}
    best, worst = max(means, key=lambda arm: means[arm]), min(means, key=lambda arm: means[arm])
    near = sum(abs(value) < 0.002 for value in means.values())
    return (
        f"{near} of {len(means)} settings lie within .002 of the default in the mean. The best is `{best}` "
        f"({signed(means[best])}), the worst `{worst}` ({signed(means[worst])})."
    )


def left_out(results: Results) -> str:
    parts = [f"## 6. Leave one corpus out\n\n{LEFT_OUT.strip()}"]
    head = ["left out", "chosen on the others", "nDCG@10 here", "recall@10 here", "harms", "best here"]
    for title, folds in results["left_out"].items():
        parts.append(f"Chosen: {title}.\n\n{table(head, [_fold(name, fold) for name, fold in folds.items()])}")
    return "\n\n".join([*parts, _recommended(results)])


def _fold(name: str, fold: Results) -> list[str]:
    if not fold["chosen"]:
        return [name, "two legs: no weight is allowed", "", "", "", ""]
    return [
        name,
        f"`{fold['chosen']}`",
        *(interval(fold["here"][one]) for one in BOTH),
        "yes" if fold["harms here"] else "no",
        f"`{fold['best here']}` {signed(fold['best difference here'])}",
    ]


def _recommended(results: Results) -> str:
    named = results["manifest"]["constants"]["named"]
    sweeps = {name: corpus["sweep"] for name, corpus in results["corpora"].items()}
    arms = {arm_name(w, named): w for w in WEIGHTS}
    gains = {w: mean_gain(sweeps, list(sweeps), arm) for arm, w in arms.items()}
    chosen = chosen_on(sweeps, list(sweeps), arms)
    unsure = {w: [name for name in sweeps if is_unsure(sweeps[name][arm])] for arm, w in arms.items()}
    worst = {w: min(sweeps, key=lambda name: _headline(sweeps[name][arm])) for arm, w in arms.items()}
    body = [
        [
            f"{w:g}",
            signed(gains[w]),
            f"{worst[w]} {interval(sweeps[worst[w]][arm]['nDCG@10'])}",
            ", ".join(unsure[w]) or "none",
        ]
        for arm, w in arms.items()
    ]
    head = ["weight", "mean gain in nDCG@10", "worst corpus", f"a loss above {TOLERATED:g} is not ruled out on"]
    return f"On all corpora together the rule chooses `{chosen}`.\n\n{table(head, body)}\n\n{RECOMMENDED.strip()}"


def _headline(row: Results) -> float:
    return float(row["nDCG@10"]["difference"])


def whole(results: Results) -> str:
    tables = {name: corpus["whole"] for name, corpus in results["corpora"].items()}
    body = [
        [
            name,
            *(f"{share(rows['two legs']['means'][one])} → {share(rows['three legs']['means'][one])}" for one in BOTH),
            *(interval(rows["three legs"][one]) for one in BOTH),
        ]
        for name, rows in tables.items()
    ]
    return f"## 7. The whole read path\n\n{WHOLE.strip()}\n\n" + table(
        ["corpus", "nDCG@10", "recall@10", "nDCG@10 difference", "recall@10 difference"], body
    )


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
        f"Embedder {about['embedder']}. Commit {', '.join(commits)}, code {', '.join(sorted(codes))} "
        "(SHA-256 over graph, legs and fusion), "
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
