"""Write docs/results/evidence.md and its plot from evidence.json.

python benchmarks/studies/evidence_report.py docs/results/evidence.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from choosing import ONE_FOR_ALL
from evidence import AS_SHIPPED, GRAPH, LEXICAL, OF_WORDS, SHIPPED, WAYS
from matplotlib import pyplot as plt
from pools import FEATURES
from tables import share, signed, table

Results = Mapping[str, Any]

# Our own small set is shown; it chooses no setting and counts in no mean.
HOUSE = "house"
KNOWN = "the best for each, known afterwards"

INTRODUCTION = """# Evidence for the retrieval defaults

**Question.** Which fusion, weights and constants order the hits best?

**Answer.** The shipped recipe, `{shipped}` (weights of the lexical, dense and graph legs;
only their ratios matter). Settings chosen without the collections they are tested on gain at most
{gain} nDCG@10.

**Method.** nDCG@10 over eleven collections that count equally: seven public ones and four stores
with memories of mixed or great length (`mixed/dev`, `mixed-dialogue`, `mixed-passages`,
`sessions`). `house` is our own small set; nothing was chosen on it. Differences are against the
shipped recipe and paired by question. ▲ and ▼ mark a 95 % bootstrap interval above or below zero.
*Left out* means: choose the best setting on all collections that share no source with the tested
one, then measure it on the tested one.

    TRIVET_DATA=... {command} --kept KEPT
    python benchmarks/studies/evidence_report.py docs/results/evidence.json

At most {most} questions per collection, drawn by a hash of their ids; embedder
`{embedder}`; {date}, commit {commit}.
[evidence.json](evidence.json) holds every collection, interval, version and checksum.
"""

FUSIONS = """
Each fusion has its own best weights. All but `rrf`, which uses ranks, take the graph's scores raw.
*In hindsight* is chosen on all eleven. The last columns count collections with a significant
difference.
"""
WEIGHTS = """
The mean for each pair of weights, with dense = 12:

![mean by weights](weights.svg)

By collection, the shipped nDCG@10 and differences from it:
"""
WAY_TITLES = {
    "bm25": "BM25's constants",
    "depth": "Depth of each leg",
    "chance": "Correction for the length of a memory",
}
SHIPPED_STEPS = {"bm25": "bm25(k1=0.9, b=0.4)", "depth": "depth(50)", "chance": "chance(0.35)"}
WORSE_K1 = "bm25(k1=1.2"
PRIOR = """
Importances are honest (higher for what is asked about), random or adversarial. The base has no
prior; `prior(0.3)` ships.
"""
PRIORS = ("honest prior(0.3)", "random prior(0.3)", "adversarial prior(0.3)")
VECTORS = """
Vectors alone, against exact search: one byte a dimension changes {byte},
the product's search {search}.
"""
BY_QUESTION = """
Can the question tell which leg to trust? For each third of a feature
({features}),
the lexical weight was chosen on the other groups. The best feature, {best}, gains
{gain}; one weight for all questions {one}. Knowing the
judgments would gain {known}.
"""
WHOLE = "The candidates of the sections above through the whole read path. `bonus(0.05)` ships."


def main() -> None:
    source = Path(sys.argv[1])
    results = json.loads(source.read_text(encoding="utf-8"))
    sections = [
        introduction(results),
        f"## 1. Which fusion\n\n{FUSIONS.strip()}\n\n{fusions(results)}",
        f"## 2. Weights of the three legs\n\n{WEIGHTS.strip()}\n\n{weights(results)}",
        *(way(results, number, name) for number, name in enumerate(WAYS, 3)),
        section(
            "6. The importance prior",
            PRIOR.strip(),
            {name: results["prior"][name] for name in PRIORS},
        ),
        f"## 7. How vectors are searched\n\n{vectors(results['vectors'])}",
        f"## 8. A weight for each question\n\n{by_question(results['by question'])}",
        section("9. Whole recalls, and the exact-match bonus", WHOLE, results["whole recalls"]),
    ]
    source.with_suffix(".md").write_text(
        "\n\n".join(one.strip() for one in sections) + "\n", encoding="utf-8"
    )
    plot_weights(results, source.parent / "weights.svg")


def introduction(results: Results) -> str:
    about = results["manifest"]
    tried = [results[f"weights and {name} left out"]["difference"] for name in WAYS]
    tried += [results[OF_WORDS]["difference"], results["methods left out"]["spread"]["difference"]]
    tried += [results["by question"][name]["difference"] for name in (*FEATURES, ONE_FOR_ALL)]
    told = {name: about[name] for name in ("command", "embedder", "date")}
    most = max(about["queries"].values())
    return INTRODUCTION.format(
        shipped=SHIPPED,
        gain=_difference(max(tried)),
        most=most,
        commit=about["commit"][:12],
        **told,
    )


def fusions(results: Results) -> str:
    body = []
    for name, best in results["methods"].items():
        left_out = results["methods left out"][name]
        better, worse = _counts(left_out)
        weights = best["setting"].partition(" ")[2]
        body.append(
            [f"`{name}`", weights, _marked(best["difference"]), _difference(left_out["difference"])]
        )
        body[-1] += [better, worse]
    return table(["", "best weights", "in hindsight", "left out", "better on", "worse on"], body)


def weights(results: Results) -> str:
    found = results["weights"]
    without_graph = SHIPPED.rpartition("/")[0] + "/0"
    shown = {"words alone": found["spread 1/0/0"], "vectors alone": found["spread 0/1/0"]}
    shown[without_graph] = found[without_graph]
    corpora = found[SHIPPED]["corpora"]
    body = [
        [
            f"`{SHIPPED}`",
            share(found[SHIPPED]["mean"]),
            *(share(one["nDCG@10"]) for one in corpora.values()),
        ]
    ]
    for label, one in shown.items():
        cells = (_marked(one["corpora"][name]["difference"]) for name in corpora)
        body.append([f"`{label}`", _marked(one["difference"]), *cells])
    return table(["", "mean", *corpora], body)


def way(results: Results, number: int, name: str) -> str:
    together = _difference(results[f"weights and {name} left out"]["difference"])
    text = f"`{SHIPPED_STEPS[name]}` ships. Chosen with all weights, left out: {together}."
    if name == "bm25":
        text += "\nEvery b is worse with k1 = 1.2."
    if name == "chance":
        text += (
            "\nOnly the Wikipedia collections speak for the graph. With its weight as shipped, the "
            "lexical weight\nand the correction, left out: "
            f"{_difference(results[OF_WORDS]['difference'])}."
        )
    return section(f"{number}. {WAY_TITLES[name]}", text, results[name])


def vectors(found: Results) -> str:
    named = {"byte": "vectors of one byte a dimension", "search": "vectors by the product's search"}
    told = {name: _difference(found[label]["difference"]) for name, label in named.items()}
    return VECTORS.strip().format(**told)


def by_question(found: Results) -> str:
    best = max(FEATURES, key=lambda name: found[name]["difference"][0])
    told = {"gain": best, "one": ONE_FOR_ALL, "known": KNOWN}
    gains = {name: _difference(found[label]["difference"]) for name, label in told.items()}
    return BY_QUESTION.strip().format(features=", ".join(FEATURES), best=best, **gains)


def section(title: str, text: str, given: Results) -> str:
    return f"## {title}\n\n{text}\n\n{rows(given)}"


def rows(given: Results) -> str:
    body = []
    for label, one in given.items():
        if label in (AS_SHIPPED, SHIPPED) or label.startswith(WORSE_K1):
            continue
        name = f"`{label.replace('|', chr(92) + '|')}`"
        body.append([name, share(one["mean"]), _difference(one["difference"])])
    return table(["", "mean", "difference"], body)


def _counts(one: Results) -> tuple[str, str]:
    """On how many collections the interval lies above and below zero."""
    found = [corpus["difference"] for name, corpus in one["corpora"].items() if name != HOUSE]
    return str(sum(low > 0 for _, low, _ in found)), str(sum(high < 0 for _, _, high in found))


def _marked(difference: Sequence[float]) -> str:
    middle, low, high = difference
    return f"{signed(middle)}{' ▲' if low > 0 else ' ▼' if high < 0 else ''}"


def _difference(difference: Sequence[float]) -> str:
    middle, low, high = difference
    return f"{signed(middle)} ({signed(low)} to {signed(high)})"


def plot_weights(results: Results, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4))
    values = [
        [results["weights"][f"spread {lexical:g}/12/{graph:g}"]["difference"][0] for graph in GRAPH]
        for lexical in LEXICAL
    ]
    drawn = axes.imshow(values, cmap="cividis", vmin=-0.03, aspect="auto")
    axes.set_xticks(range(len(GRAPH)), [f"{graph:g}" for graph in GRAPH])
    axes.set_yticks(range(len(LEXICAL)), [f"{lexical:g}" for lexical in LEXICAL])
    axes.set_xlabel("weight of the graph leg")
    axes.set_ylabel("weight of the lexical leg")
    figure.colorbar(drawn, label="nDCG@10 against what ships")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
