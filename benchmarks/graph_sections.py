"""The sections of graph.md that are tables of arms."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from graph_arms import EVERYWHERE
from graph_choice import TOLERATED, chosen_on, is_unsure, mean_gain
from graph_evidence import (
    CONSTANTS,
    MASS_WEIGHTS,
    NAMED,
    NORMS,
    RANK_WEIGHTS,
    SOURCE_WEIGHTS,
    SOURCES,
    WEIGHTS,
    arm_name,
)
from graph_tables import by_corpus, chance, interval, share, signed, table
from graph_words import FUSION, GRAPHS, LEFT_OUT, RECOMMENDED, STRATA, SWEEP, SWITCH, WHOLE

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
