"""Writes docs/results/evidence.md and its plots from evidence.json.

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
from evidence import GRAPH, LEXICAL, OF_WORDS, SHIPPED, WAYS
from matplotlib import pyplot as plt
from pools import FEATURES
from tables import share, signed, table

Results = Mapping[str, Any]

INTRODUCTION = """# Evidence for the retrieval defaults

nDCG@10, every setting against what ships (`{shipped}`: weights are written lexical/dense/graph, and only their ratios
matter). Differences are paired by question; ▲ and ▼ mark a 95 % bootstrap interval above or below zero. `mean` is over
eleven collections, each counting alike: seven public ones, and four of mixed or great length as a user's store is
(`mixed/dev`, `mixed-dialogue`, `mixed-passages`, `sessions`). `house` is our own small set and took no part in any
choice. **Left out** means: for each collection the setting with the best mean on all others that are not made of the
same originals (LoCoMo, its sessions and their mixture are one group; MuSiQue, HotpotQA and their mixture another), and
what that setting does here. Made by

    TRIVET_DATA=... {command} --kept KEPT
    python benchmarks/studies/evidence_report.py docs/results/evidence.json

All vectors are those of the embedder `{embedder}`. At most {most} questions of each collection, drawn by a hash of
their ids ({queries}). Rankings are retrieved once and fused many times; section 9 is of whole recalls. The data is
not part of this repository; `evidence.json` holds its checksums and the versions. {date}, commit {commit}.
"""

METHODS = """Each fusion with its own best weights: `looking back` on all eleven, `left out` as above. The graph's
scores enter as they are (`norm.graph=raw`) but for `rrf`, which knows ranks alone."""
WEIGHTS_TEXT = """The mean over the eleven for each pair of weights, dense = 12, against what ships.

![mean by weights](weights.svg)"""
WAYS_TEXT = """`words` is the median length of the first ten hits in the stores of mixed length, in the order
{mixed}; what ships is the first row."""
OF_WORDS_TEXT = """Without Wikipedia no collection is left that speaks for the graph, so its weight cannot be chosen
there. With the graph's weight as it ships, the lexical weight and the chance together, left out:"""
PRIOR = """Importances drawn honestly (what is asked for tends to be rated higher), at random, or adversarially; on the
fused order, against no prior."""
BY_QUESTION = """Can the question itself tell which leg to trust? The lexical weight was chosen for each third of a
feature on the other groups and tried on those left out. {told} The last row knows the judgements: the right weight does
differ from question to question, and nothing that was tried here tells which it is."""


def main() -> None:
    source = Path(sys.argv[1])
    results = json.loads(source.read_text(encoding="utf-8"))
    sections = [
        introduction(results["manifest"]),
        methods(results),
        weights(results),
        *(way(results, number, name) for number, name in enumerate(WAYS, 3)),
        section("6. The importance prior", PRIOR, results["prior"]),
        section("7. How vectors are searched", "Vectors alone, against exact search.", results["vectors"]),
        section("8. A weight for each question", BY_QUESTION.format(told=told(results)), results["by question"]),
        section("9. Whole recalls, and the exact-match bonus", WHOLE, results["whole recalls"]),
    ]
    source.with_suffix(".md").write_text("\n\n".join(one.strip() for one in sections) + "\n", encoding="utf-8")
    plot_methods(results, source.parent / "methods.svg")
    plot_weights(results, source.parent / "weights.svg")


WHOLE = """What the sections above would choose, through the whole read path, against what ships (`bonus(0.05)`)."""


def introduction(about: Results) -> str:
    queries = ", ".join(f"{name} {count}" for name, count in about["queries"].items())
    told = {name: about[name] for name in ("command", "embedder", "date")}
    most = max(about["queries"].values())
    return INTRODUCTION.format(shipped=SHIPPED, most=most, queries=queries, commit=about["commit"][:12], **told)


def methods(results: Results) -> str:
    back = {f"{name}: {one['setting'].partition(' ')[2]}": one for name, one in results["methods"].items()}
    parts = ["## 1. Which fusion", METHODS, "![fusions](methods.svg)", "Looking back:", rows(back), "Left out:"]
    return "\n\n".join([*parts, rows(results["methods left out"])])


def weights(results: Results) -> str:
    grid = [
        [f"lexical {lexical:g}", *(_mean(results["weights"][f"spread {lexical:g}/12/{graph:g}"]) for graph in GRAPH)]
        for lexical in LEXICAL
    ]
    alone = {"words alone": results["weights"]["spread 1/0/0"], "vectors alone": results["weights"]["spread 0/1/0"]}
    without = SHIPPED.rpartition("/")[0] + "/0"
    best = results["methods"]["spread"]["setting"]
    shown = alone | {one: results["weights"][one] for one in dict.fromkeys((SHIPPED, without, best))}
    parts = ["## 2. Weights of the three legs together", WEIGHTS_TEXT]
    parts += [table(["", *(f"graph {graph:g}" for graph in GRAPH)], grid), "By collection:", rows(shown)]
    return "\n\n".join([*parts, "Left out:", folds(results["methods left out"]["spread"])])


def way(results: Results, number: int, name: str) -> str:
    mixed = [one for one in next(iter(results[name].values()))["corpora"] if one in ("sessions",) or "mixed" in one]
    titles = {
        "bm25": "BM25's constants",
        "depth": "Depth of each leg",
        "chance": "What the best of many passages loses",
    }
    words = {
        label: " / ".join(f"{one['median words of the hits'][corpus]:.0f}" for corpus in mixed)
        for label, one in results[name].items()
    }
    text = WAYS_TEXT.format(mixed=", ".join(mixed))
    parts = [f"## {number}. {titles[name]}", text, rows(results[name], words=words)]
    parts += ["Together with all weights, left out:", folds(results[f"weights and {name} left out"])]
    if name == "chance":
        parts += [OF_WORDS_TEXT, folds(results[OF_WORDS])]
    return "\n\n".join(parts)


def section(title: str, text: str, given: Results) -> str:
    return f"## {title}\n\n{text}\n\n{rows(given)}"


def told(results: Results) -> str:
    """Whether any feature gains surely over what ships."""
    tried = {name: results["by question"][name]["difference"] for name in FEATURES}
    best = max(tried, key=lambda name: tried[name][0])
    surely = "surely more" if tried[best][1] > 0 else "not surely more"
    one = _difference(results["by question"][ONE_FOR_ALL]["difference"])
    return f"The best, `{best}`, gains {_difference(tried[best])}, {surely} than what ships; one weight for all {one}."


def rows(given: Results, words: Mapping[str, str] | None = None) -> str:
    names = list(next(iter(given.values()))["corpora"])
    head = ["", "mean", *names, *(["words"] if words else [])]
    body = [
        [f"`{label.replace('|', chr(92) + '|')}`", _mean(one), *(_cell(one["corpora"].get(name)) for name in names)]
        + ([words[label]] if words else [])
        for label, one in given.items()
    ]
    return table(head, body)


def folds(given: Results) -> str:
    body = [
        [name, f"`{one['chosen'].replace('|', chr(92) + '|')}`", _difference(one["difference"])]
        for name, one in given["corpora"].items()
    ]
    body.append(["mean", "", _difference(given["difference"])])
    return table(["left out", "chosen on the others", "against what ships"], body)


def _mean(one: Results) -> str:
    level = f"{share(one['mean'])} " if "mean" in one else ""
    return f"{level}{_marked(one['difference'])}"


def _cell(one: Results | None) -> str:
    if one is None:
        return ""
    level = f"{share(one['nDCG@10'])} " if "nDCG@10" in one else ""
    return f"{level}{_marked(one['difference'])}"


def _marked(difference: Sequence[float]) -> str:
    middle, low, high = difference
    return f"{signed(middle)}{' ▲' if low > 0 else ' ▼' if high < 0 else ''}"


def _difference(difference: Sequence[float]) -> str:
    middle, low, high = difference
    return f"{signed(middle)} ({signed(low)} to {signed(high)})"


def plot_methods(results: Results, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 3.2))
    names = list(results["methods left out"])
    for place, kind in enumerate(("methods", "methods left out")):
        found = [results[kind][name]["difference"] for name in names]
        reach = [[one[0] - one[1] for one in found], [one[2] - one[0] for one in found]]
        heights = [-row - 0.2 * place for row in range(len(names))]
        label = ("looking back", "left out")[place]
        axes.errorbar([one[0] for one in found], heights, xerr=reach, fmt="os"[place], capsize=2, label=label)
    axes.set_yticks([-row - 0.1 for row in range(len(names))], names)
    axes.axvline(0, color="#7F7F7F", linewidth=0.9)
    axes.set_xlabel("nDCG@10 against what ships, mean of eleven collections")
    axes.legend(fontsize=8)
    _save(figure, path)


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
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
