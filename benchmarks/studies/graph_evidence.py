"""Does the graph leg earn its place? Every arm on every corpus, its weight chosen on the others and tested on each.

    TRIVET_DATA=/path/to/originals python benchmarks/studies/graph_evidence.py
    python benchmarks/studies/graph_report.py docs/results/graph.json

Stores are kept in the lab's cache; a first run embeds about 45,000 documents. Corpora that are not asked for keep the
figures of an earlier run, and each says which code measured it. All are those of one embedder, the shipped one unless
another is named.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

import msgspec
from embedder import add_embedder, check_same, identity
from graph_arms import (
    COMPARED,
    EVERYWHERE,
    FILES,
    GRAPH_ONLY,
    MEASURES,
    TWO_LEGS,
    Arms,
    Row,
    Source,
    by_nearness,
    compared,
    farthest_hops,
    fewer,
    moved,
    open_with,
    open_without_links,
    relevant,
    rows,
    size_of_graph,
    three,
)

import trivet
from trivet.graph import extract, walk
from trivet.lab.bench import Bench, cache_folder, open_bench
from trivet.lab.catalog import find_data_folder, import_original
from trivet.lab.compare import CONFIDENCE, RESAMPLES
from trivet.lab.dataset import Dataset
from trivet.lab.dataset_files import house
from trivet.lab.measures import Measured
from trivet.lab.run import environment, run_arm
from trivet.lab.significance import holm
from trivet.search.legs import seeds as graph_seeds
from trivet.search.recipe import DEFAULT, parse_recipe
from trivet.types import Candidate, Ranking

# Folders of the package whose code a measurement depends on; the manifest holds their hash.
MEASURED_CODE = ("graph", "search/legs", "search/fuse")
# A corpus may lose this much nDCG@10 at most.
TOLERATED = 0.005
HEADLINE = "nDCG@10"

# Differences by corpus, then by arm.
Sweep = Mapping[str, Mapping[str, Mapping[str, Any]]]
Barred = Callable[[Mapping[str, Any]], bool]


def harms(row: Mapping[str, Any]) -> bool:
    """Whether the interval lies wholly below what is tolerated: a loss larger than that has been shown."""
    return float(row[HEADLINE]["high"]) < -TOLERATED


def is_safe(row: Mapping[str, Any]) -> bool:
    """Whether the interval lies wholly above it: a loss larger than that has been ruled out."""
    return float(row[HEADLINE]["low"]) > -TOLERATED


def is_unsure(row: Mapping[str, Any]) -> bool:
    return not is_safe(row)


def chosen_on(sweep: Sweep, corpora: Sequence[str], arms: Iterable[str], barred: Barred = harms) -> str | None:
    """The arm with the largest mean gain among those that are barred by none of these corpora."""
    allowed = [arm for arm in arms if not any(barred(sweep[corpus][arm]) for corpus in corpora)]
    return max(allowed, key=lambda arm: mean_gain(sweep, corpora, arm)) if allowed else None


def mean_gain(sweep: Sweep, corpora: Sequence[str], arm: str) -> float:
    return fmean(sweep[corpus][arm][HEADLINE]["difference"] for corpus in corpora)


def leave_one_out(sweep: Sweep, arms: Sequence[str], barred: Barred = harms) -> dict[str, dict[str, Any]]:
    """For each corpus, what the others would choose, and what that does here."""
    folds: dict[str, dict[str, Any]] = {}
    for corpus in sweep:
        others = [other for other in sweep if other != corpus]
        arm = chosen_on(sweep, others, arms, barred)
        if arm is None:
            folds[corpus] = {"chosen": None}
            continue
        best = max(arms, key=lambda one: sweep[corpus][one][HEADLINE]["difference"])
        folds[corpus] = {
            "chosen": arm,
            "gain on the others": round(mean_gain(sweep, others, arm), 5),
            "here": sweep[corpus][arm],
            "harms here": harms(sweep[corpus][arm]),
            "best here": best,
            "best difference here": sweep[corpus][best][HEADLINE]["difference"],
        }
    return folds


def over_corpora(sweep: Sweep, arm: str, measures: Sequence[str]) -> dict[str, dict[str, float]]:
    """p of one arm on every corpus, corrected by Holm over the corpora."""
    corrected = {measure: holm([sweep[corpus][arm][measure]["p"] for corpus in sweep]) for measure in measures}
    return {
        corpus: {measure: round(corrected[measure][place], 5) for measure in measures}
        for place, corpus in enumerate(sweep)
    }


def verdict(row: Mapping[str, Any], corrected_p: float) -> str:
    """In a word what an arm does to a corpus, by its headline measure."""
    figures = row[HEADLINE]
    if harms(row):
        return "hurts"
    if corrected_p < 0.05:
        return "wins" if figures["difference"] > 0 else "loses a little"
    return "neutral" if is_safe(row) else "neutral, but a loss above 0.005 is not ruled out"


CORPORA = ("hotpotqa", "musique", "locomo", "lihua", "scifact", "cranfield", "cosqa", "house")
WEIGHTS = (1, 2, 4, 6, 8, 10, 12, 16)
NAMED = (0, 0.1, 0.3, 1)
NORMS: Mapping[str, tuple[float, ...]] = {
    "raw": WEIGHTS,
    "spread": (0.05, 0.1, 0.25, 0.5, 1, 2),
    "minmax": (0.1, 0.25, 0.5, 1, 2, 4),
    "zscore": (0.02, 0.05, 0.1, 0.25, 0.5, 1),
}
# What arrived itself instead of its square root: the strong are heard far more than the weak.
MASS_WEIGHTS = (8, 16, 32, 64)
RANK_WEIGHTS = (0.25, 0.5, 1)
CONSTANTS: Mapping[str, tuple[float, ...]] = {
    "seeds": (3, 5, 10, 20),
    "sharpness": (1, 2, 3, 5),
    "hits": (0, 0.5, 0.7, 0.85, 1),
    "onward": (0.5, 0.7, 0.85),
    "rare": (0.5, 0.75, 1),
    "rest": (0.1, 0.25, 0.5, 1),
    "about": (1, 3, 6, 12),
}
SOURCES: tuple[Source, ...] = ("rules", "triples", "both")
SOURCE_WEIGHTS = (2, 4, 6, 8, 10, 12)

DEFAULT_WEIGHT = DEFAULT.fusion.weights["graph"]
DEFAULT_NAMED = DEFAULT.walk.named


def main() -> None:
    options = _options()
    results = json.loads(options.output.read_text(encoding="utf-8")) if options.output.exists() else {"corpora": {}}
    if options.only:
        check_same(results, options.embedder, options.output)
        about = manifest() | {"embedder": identity(options.embedder)}
        results["manifest"] = about | {"measured": results.get("manifest", {}).get("measured", {})}
    for name in options.only:
        started = time.monotonic()
        results["corpora"][name] = measure_corpus(name, options)
        results["manifest"]["measured"][name] = {
            "dataset_sha256": _dataset(name).fingerprint,
            "commit": results["manifest"]["commit"],
            "code_sha256": results["manifest"]["code_sha256"],
            "date": results["manifest"]["date"],
            "queries": options.queries or len(_dataset(name).queries),
            "seconds": round(time.monotonic() - started),
        }
        _write(options.output, results)
    results["corpora"] = {name: results["corpora"][name] for name in CORPORA if name in results["corpora"]}
    if len(results["corpora"]) > 2:
        results |= conclusions({name: one["sweep"] for name, one in results["corpora"].items()})
    _write(options.output, results)


def measure_corpus(name: str, options: argparse.Namespace) -> dict[str, Any]:
    cache = options.cache or cache_folder()
    dataset = _dataset(name)
    measured: dict[str, Any] = {}
    with open_bench(dataset, cache, options.embedder) as opened:
        if options.reread:
            opened.trivet.engine.store.upkeep.rebuild_graph()
            opened.trivet.drain()
    with open_bench(dataset, cache, options.embedder) as opened:
        bench = Bench(_asked(dataset, options), opened.trivet)
        arms = Arms(bench)
        for question, answer in QUESTIONS.items():
            _say(f"{name}: {question}")
            measured[question] = answer(arms)
    if name in FILES:
        _say(f"{name}: graphs")
        measured["graphs"] = graphs(dataset, cache, options)
    if any(document.links for document in dataset.documents):
        _say(f"{name}: links")
        measured["links"] = links(dataset, cache, options)
    return measured


def sweep(arms: Arms) -> dict[str, Row]:
    """The weight and the switch together: what the default is chosen from."""
    two = arms.two_legs()
    found = {"two legs": two, "graph only": arms.three_legs(GRAPH_ONLY)}
    for named in NAMED:
        found |= {arm_name(w, named): arms.three_legs(three(w), f"walk(named={named:g})") for w in WEIGHTS}
    return rows(found, dict.fromkeys(found, two))


def switch(arms: Arms) -> dict[str, Any]:
    """Without any switch: the walk starts from the hits alone where the query names nothing. What does it do there?"""
    two, silent = arms.two_legs(), arms.silent()
    shares = {"named anything": round(arms.spoke(), 4), EVERYWHERE: round(arms.spoke(EVERYWHERE), 4)}
    found = {f"graph={w:g} {EVERYWHERE}": arms.three_legs(three(w), EVERYWHERE) for w in WEIGHTS}
    answerable = two.per_query[COMPARED[0]]
    groups = {
        "names something": [query for query in answerable if query not in silent],
        "names nothing": [query for query in answerable if query in silent],
    }
    always = found[f"graph={DEFAULT_WEIGHT:g} {EVERYWHERE}"]
    by_naming = compared(two, always, {name: queries for name, queries in groups.items() if queries})
    return {"spoke": shares, "arms": rows(found, dict.fromkeys(found, two)), "by naming": by_naming}


def fusion(arms: Arms) -> dict[str, Row]:
    """By score with other norms for the graph's leg, and by rank."""
    two = arms.two_legs()
    found: dict[str, Measured] = {}
    bases: dict[str, Measured] = {}
    for norm, weights in NORMS.items():
        found |= {f"norm.graph={norm} graph={w:g}": arms.three_legs(three(w, norm)) for w in weights}
    found |= {f"mass graph={w:g}": arms.three_legs(three(w), reshape=as_mass) for w in MASS_WEIGHTS}
    for k in (60, 10):
        ranked = arms.two_legs(f"rrf(k={k})")
        found[f"rrf(k={k}) two legs"] = ranked
        for weight in RANK_WEIGHTS:
            name = f"rrf(k={k}) graph={weight:g}"
            found[name] = arms.three_legs(f"rrf(k={k}, graph={weight:g})")
            bases[name] = ranked
    return rows(found, dict.fromkeys(found, two) | bases)


def constants(arms: Arms) -> dict[str, Row]:
    """One constant of the walk at a time, at the default weight, against the default constants."""
    base = arms.three_legs(three(DEFAULT_WEIGHT))
    found: dict[str, Measured] = {"two legs": arms.two_legs(), "default": base}
    for name, values in CONSTANTS.items():
        for value in values:
            if value != getattr(DEFAULT.walk, name):
                found[f"{name}={value:g}"] = arms.three_legs(three(DEFAULT_WEIGHT), f"walk({name}={value:g})")
    return rows(found, dict.fromkeys(found, base))


def strata(arms: Arms) -> dict[str, Row]:
    """Two legs against three at the default weight: by the corpus' own strata, and on multi-hop sets by nearness."""
    bench = arms.bench
    two, three_legs = arms.two_legs(), arms.three_legs(three(DEFAULT_WEIGHT))
    groups = {"all": tuple(two.per_query[COMPARED[0]]), **two.strata}
    if bench.dataset.name in FILES:
        groups |= by_nearness(farthest_hops(bench))
    wanted, pools = relevant(bench.dataset), arms.pools()
    before, after = arms.answers(TWO_LEGS, None), arms.answers(three(DEFAULT_WEIGHT))
    table = compared(two, three_legs, groups)
    return {name: row | moved(wanted, groups[name], before, after, pools) for name, row in table.items()}


def whole(arms: Arms) -> dict[str, Row]:
    """The same through the whole read path, with bonus, prior, folding and links."""
    found = {
        "two legs": run_arm(arms.bench, f"{TWO_LEGS} | legs(lexical, dense)", MEASURES, 20).measured,
        "three legs": run_arm(arms.bench, three(DEFAULT_WEIGHT), MEASURES, 20).measured,
    }
    return rows(found, dict.fromkeys(found, found["two legs"]))


QUESTIONS: Mapping[str, Callable[[Arms], dict[str, Any]]] = {
    "switch": switch,
    "constants": constants,
    "sweep": sweep,
    "fusion": fusion,
    "strata": strata,
    "whole": whole,
}


def graphs(dataset: Dataset, cache: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Graphs from the rules, from given triples and from both: against two legs, and against the rules."""
    found: dict[str, Measured] = {}
    about: dict[str, Any] = {}
    two: Measured | None = None
    for source in SOURCES:
        with tempfile.TemporaryDirectory() as folder:
            opened, counts = _source(source, dataset, cache, Path(folder), options.embedder)
            with opened:
                arms = Arms(Bench(_asked(dataset, options), opened.trivet))
                two = two or arms.two_legs()
                about[source] = {"triples": counts, "spoke": round(arms.spoke(), 4), **size_of_graph(opened)}
                mine = {f"{source} graph={w:g}": arms.three_legs(three(w)) for w in SOURCE_WEIGHTS}
                found |= {f"{source} graph only": arms.three_legs(GRAPH_ONLY), **mine}
    assert two is not None
    against_rules = {arm: one for arm, one in found.items() if not arm.startswith("rules ")}
    rules = {arm: found[f"rules {arm.partition(' ')[2]}"] for arm in against_rules}
    return {
        "about": about,
        "against two legs": rows(found, dict.fromkeys(found, two)),
        "against the rules": rows(against_rules, rules),
    }


def links(dataset: Dataset, cache: Path, options: argparse.Namespace) -> dict[str, Row]:
    """The gain over two legs with the memories' links in the graph, and with concepts alone."""
    found: dict[str, Measured] = {}
    asked, embedder = _asked(dataset, options), options.embedder
    with open_bench(dataset, cache, embedder) as opened:
        arms = Arms(Bench(asked, opened.trivet))
        two, found["concepts and links"] = arms.two_legs(), arms.three_legs(three(DEFAULT_WEIGHT))
    with tempfile.TemporaryDirectory() as folder, open_without_links(dataset, cache, Path(folder), embedder) as trivet:
        found["concepts alone"] = Arms(Bench(asked, trivet)).three_legs(three(DEFAULT_WEIGHT))
    return rows(found, dict.fromkeys(found, two))


def conclusions(sweeps: Mapping[str, Mapping[str, Row]]) -> dict[str, Any]:
    everything = [arm_name(weight, named) for named in NAMED for weight in WEIGHTS]
    weights_alone = [arm_name(weight, DEFAULT_NAMED) for weight in WEIGHTS]
    return {
        "left_out": {
            "weight and switch": leave_one_out(sweeps, everything),
            "weight": leave_one_out(sweeps, weights_alone),
            "weight, where a larger loss must be ruled out": leave_one_out(sweeps, weights_alone, is_unsure),
        },
        "holm": {str(weight): over_corpora(sweeps, arm_name(weight, DEFAULT_NAMED), COMPARED) for weight in WEIGHTS},
    }


def arm_name(weight: float, named: float) -> str:
    return f"graph={weight:g} named={named:g}"


def as_mass(ranking: Ranking) -> Ranking:
    candidates = tuple(Candidate(id=one.id, score=one.score**2) for one in ranking.candidates)
    return msgspec.structs.replace(ranking, candidates=candidates)


def manifest() -> dict[str, Any]:
    """What is needed to get the same figures again. The hash tells the code apart where the commit does not."""
    return environment() | {
        "code_sha256": _hash_of_code(),
        "constants": msgspec.to_builtins(DEFAULT.walk) | _numbers_of(walk) | _numbers_of(graph_seeds),
        "extraction_version": extract.EXTRACTION_VERSION,
        "default_weight": DEFAULT_WEIGHT,
        "default_recipe": str(parse_recipe("default")),
        "resamples": RESAMPLES,
        "confidence": CONFIDENCE,
    }


def _numbers_of(module: ModuleType) -> dict[str, float]:
    named = vars(module).items()
    return {name: value for name, value in named if name.isupper() and isinstance(value, int | float)}


def _hash_of_code() -> str:
    package = Path(trivet.__file__).parent
    digest = hashlib.sha256()
    for path in sorted([one for folder in MEASURED_CODE for one in package.glob(f"{folder}/*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _source(source: Source, dataset: Dataset, cache: Path, folder: Path, embedder: str) -> tuple[Bench, dict[str, int]]:
    if source == "rules":
        return open_bench(dataset, cache, embedder), {}
    return open_with(source, dataset, cache, folder, find_data_folder(), embedder)


def _asked(dataset: Dataset, options: argparse.Namespace) -> Dataset:
    return fewer(dataset, options.queries) if options.queries else dataset


def _dataset(name: str) -> Dataset:
    return house() if name == "house" else import_original(name)


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _write(path: Path, results: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="*", default=list(CORPORA), choices=CORPORA, help="corpora to measure anew; none: conclude"
    )
    parser.add_argument("--queries", type=int, help="the first so many queries of each alone: a trial")
    parser.add_argument("--reread", action="store_true", help="read all memories for their concepts anew first")
    parser.add_argument("--cache", type=Path, help="where the stores are kept; the lab's cache if none")
    parser.add_argument("--output", type=Path, default=Path("docs/results/graph.json"))
    add_embedder(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
