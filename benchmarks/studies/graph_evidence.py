"""Measure the graph leg: three legs against two at the shipped weights, on every collection.

TRIVET_DATA=/path/to/originals python benchmarks/studies/graph_evidence.py --queries 250
python benchmarks/studies/graph_report.py docs/results/graph.json

evidence.py chooses the weights. Collections not requested keep the figures of an earlier run, and
each names the code that measured it. All use one embedder, by default the shipped one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from choosing import GROUPS
from embedder import add_embedder, check_same, identity
from graph_arms import (
    COMPARED,
    GRAPH_ONLY,
    SHIPPED,
    TWO_LEGS,
    Arms,
    Row,
    by_nearness,
    compared,
    farthest_hops,
    moved,
    open_without_links,
    relevant,
    rows,
    three,
)
from lengths import some
from pools import dataset_named

from trivet.graph.concepts import EXTRACTION_VERSION
from trivet.lab.datasets.plain_layout import lab_folder
from trivet.lab.measure.bench import Bench, open_bench
from trivet.lab.measure.comparison import holm
from trivet.lab.measure.run import environment
from trivet.search.recipe import DEFAULT

CORPORA = (*GROUPS, "house")
# Multi-hop questions, whose hops can be near or far.
HOPS = ("hotpotqa", "musique")
WEIGHTS = (2, 4, 8, 12, 16, 24)
WEIGHT = SHIPPED["graph"]
# Influence of the graph for queries that name common things.
NAMED = (0, 0.1, 1)
NORMS: Mapping[str, tuple[float, ...]] = {
    "spread": (0.25, 0.5, 1),
    "minmax": (0.25, 0.5, 1),
    "zscore": (0.05, 0.1, 0.25),
}
# Largest acceptable loss of nDCG@10 on a corpus.
TOLERATED = 0.005
HEADLINE = "nDCG@10"

# Differences by corpus, then by arm.
Sweep = Mapping[str, Mapping[str, Mapping[str, Any]]]


def main() -> None:
    options = _options()
    results = (
        json.loads(options.output.read_text(encoding="utf-8"))
        if options.output.exists()
        else {"corpora": {}}
    )
    if options.only:
        check_same(results, options.embedder, options.output)
        results["manifest"] = manifest(options) | {
            "measured": results.get("manifest", {}).get("measured", {})
        }
    for name in options.only:
        started = time.monotonic()
        results["corpora"][name] = measure_corpus(name, options)
        results["manifest"]["measured"][name] = {
            "dataset_sha256": dataset_named(name).fingerprint,
            "commit": results["manifest"]["commit"],
            "date": results["manifest"]["date"],
            "queries": results["corpora"][name]["strata"]["all"]["queries"],
            "seconds": round(time.monotonic() - started),
        }
        _write(options.output, results)
    results["corpora"] = {
        name: results["corpora"][name] for name in CORPORA if name in results["corpora"]
    }
    sweeps = {name: one["sweep"] for name, one in results["corpora"].items()}
    results["holm"] = over_corpora(sweeps, arm_name(WEIGHT), COMPARED)
    _write(options.output, results)


def measure_corpus(name: str, options: argparse.Namespace) -> dict[str, Any]:
    cache, dataset = options.cache or lab_folder(), dataset_named(name)
    measured: dict[str, Any] = {}
    with open_bench(dataset, cache, options.embedder) as opened:
        arms = Arms(Bench(some(dataset, options.queries), opened.trivet))
        measured["spoke"] = round(arms.spoke(), 4)
        for question, answer in QUESTIONS.items():
            _say(f"{name}: {question}")
            measured[question] = answer(arms)
        two, linked = arms.two_legs(), arms.three_legs(three(WEIGHT))
    if any(document.links for document in dataset.documents):
        _say(f"{name}: links")
        with (
            tempfile.TemporaryDirectory() as folder,
            open_without_links(dataset, cache, Path(folder), options.embedder) as trivet,
        ):
            alone = Arms(Bench(some(dataset, options.queries), trivet)).three_legs(three(WEIGHT))
        found = {"concepts and links": linked, "concepts alone": alone}
        measured["links"] = rows(found, dict.fromkeys(found, two))
    return measured


def sweep(arms: Arms) -> dict[str, Row]:
    """Vary weight, norms and switch one at a time, the others as shipped."""
    two = arms.two_legs()
    found = {"two legs": two, "graph only": arms.three_legs(GRAPH_ONLY)}
    found |= {arm_name(weight): arms.three_legs(three(weight)) for weight in WEIGHTS}
    for norm, weights in NORMS.items():
        found |= {
            f"norm.graph={norm} graph={w:g}": arms.three_legs(three(w, norm)) for w in weights
        }
    found |= {
        f"named={named:g}": arms.three_legs(three(WEIGHT), f"walk(named={named:g})")
        for named in NAMED
    }
    return rows(found, dict.fromkeys(found, two))


def strata(arms: Arms) -> dict[str, Row]:
    """Compare by the corpus's strata, and on multi-hop sets by nearness."""
    bench = arms.bench
    two, three_legs = arms.two_legs(), arms.three_legs(three(WEIGHT))
    groups = {"all": tuple(two.per_query[HEADLINE]), **two.strata}
    if bench.dataset.name in HOPS:
        groups |= by_nearness(farthest_hops(bench))
    wanted, pools = relevant(bench.dataset), arms.pools()
    before, after = arms.answers(TWO_LEGS, None), arms.answers(three(WEIGHT))
    table = compared(two, three_legs, groups)
    return {
        name: row | moved(wanted, groups[name], before, after, pools) for name, row in table.items()
    }


QUESTIONS: Mapping[str, Callable[[Arms], dict[str, Any]]] = {"sweep": sweep, "strata": strata}


def harms(row: Mapping[str, Any]) -> bool:
    """Return whether a loss larger than tolerated is shown by the interval."""
    return float(row[HEADLINE]["high"]) < -TOLERATED


def is_safe(row: Mapping[str, Any]) -> bool:
    """Return whether the interval rules out a loss larger than tolerated."""
    return float(row[HEADLINE]["low"]) > -TOLERATED


def over_corpora(sweep: Sweep, arm: str, measures: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return one arm's p-values, corrected by Holm over the corpora."""
    corrected = {
        measure: holm([sweep[corpus][arm][measure]["p"] for corpus in sweep])
        for measure in measures
    }
    return {
        corpus: {measure: round(corrected[measure][place], 5) for measure in measures}
        for place, corpus in enumerate(sweep)
    }


def verdict(row: Mapping[str, Any], corrected_p: float) -> str:
    """Summarize in a word what an arm does to a corpus, by its headline measure."""
    if harms(row):
        return "hurts"
    if corrected_p < 0.05:
        return "wins" if row[HEADLINE]["difference"] > 0 else "loses a little"
    return "neutral" if is_safe(row) else "neutral, but a loss above 0.005 is not ruled out"


def arm_name(weight: float) -> str:
    return f"graph={weight:g}"


def manifest(options: argparse.Namespace) -> dict[str, Any]:
    return environment() | {
        "command": f"python benchmarks/studies/graph_evidence.py --queries {options.queries}",
        "embedder": identity(options.embedder),
        "recipe": str(DEFAULT),
        "extraction_version": EXTRACTION_VERSION,
    }


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _write(path: Path, results: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        nargs="*",
        default=list(CORPORA),
        choices=CORPORA,
        help="corpora to measure again (default: none, only conclude)",
    )
    parser.add_argument(
        "--queries",
        type=int,
        default=250,
        help="queries per collection, drawn by a hash of their ids (250)",
    )
    parser.add_argument(
        "--cache", type=Path, help="where the stores are kept; the lab's cache if none"
    )
    parser.add_argument("--output", type=Path, default=Path("docs/results/graph.json"))
    add_embedder(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
