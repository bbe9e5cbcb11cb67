"""What the defaults rest on: every retrieval choice measured on public corpora, chosen on some and tested on the rest.

    TRIVET_DATA=/path/to/originals python benchmarks/studies/evidence.py --output evidence.json [--embedder stock]

The figures are those of one embedder, the shipped one unless another is named. Stores are kept in the lab's cache; the
first run embeds about 45,000 documents.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from arms import DEEP, MEASURES, Vectors, as_int8, completed, fused, plain_bm25
from embedder import add_embedder, check_same, identity

from trivet.analyse import analyse_query
from trivet.lab.bench import Bench, memory_id, open_bench
from trivet.lab.catalog import import_original
from trivet.lab.compare import paired
from trivet.lab.dataset_files import house
from trivet.lab.measures import Measured, measure
from trivet.lab.run import environment, run_arm
from trivet.search.fuse import fuse
from trivet.search.prior import importance_prior
from trivet.search.recipe import parse_recipe
from trivet.types import Filter

CORPORA = ("locomo", "musique", "hotpotqa", "scifact", "lihua", "cranfield", "cosqa")
PLAIN = "bonus(0) | prior(0)"

METHODS = (
    "rrf(k=60)",
    "rrf(k=10)",
    "convex(norm=minmax)",
    "convex(norm=tmm)",
    "convex(norm=zscore)",
    "convex(norm=dbsf)",
    "convex(norm=spread, lexical=1, dense=8)",
    "convex(norm=zscore) | legs(lexical)",
    "convex(norm=zscore) | legs(dense)",
)
WEIGHTS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
JOINT = (
    *(f"convex(norm={norm}, lexical={1 - w:g}, dense={w:g})" for norm in ("zscore", "minmax", "dbsf") for w in WEIGHTS),
    *(f"rrf(k={k}, lexical={1 - w:g}, dense={w:g})" for k in (5, 10, 20, 60) for w in (0.3, 0.4, 0.5, 0.6, 0.7)),
    *(f"rrf(k={k}, k.dense={d})" for k in (10, 60) for d in (5, 10, 30, 60, 120) if d != k),
)
# Where the default is looked for.
CHOICE = tuple(
    f"{fusion} | bm25({constants}) | depth({depth})"
    for fusion in (
        "rrf(k=60)",
        *(f"convex(norm=zscore, lexical={1 - w:g}, dense={w:g})" for w in (0.4, 0.45, 0.5, 0.55)),
        *(f"convex(norm=spread, lexical=1, dense={w:g})" for w in (5, 6, 7, 8, 9, 10, 12)),
    )
    for constants in ("k1=0.9, b=0.4", "k1=0.9, b=0.6", "k1=1.2, b=0.75")
    for depth in (50, 100)
)
DEPTHS = (10, 20, 30, 50, 100)
BM25 = tuple(f"bm25(k1={k1:g}, b={b:g})" for k1 in (0.9, 1.2, 1.6) for b in (0.3, 0.4, 0.5, 0.75))
BONUSES = (0.0, 0.05, 0.1, 0.2, 0.4)
PRIORS = (0.0, 0.1, 0.3)

Table = dict[str, dict[str, float]]


def main() -> None:
    options = _options()
    results: dict[str, Any] = {"manifest": environment() | {"embedder": identity(options.embedder), "datasets": {}}}
    if options.output.exists():
        results = json.loads(options.output.read_text(encoding="utf-8"))
        check_same(results, options.embedder, options.output)
    for name in options.corpora:
        known = results.setdefault("corpora", {}).get(name, {})
        wanted = [question for question in QUESTIONS if question not in known or question in options.again]
        if not wanted:
            continue
        print(f"== {name}", file=sys.stderr, flush=True)
        with _bench(name, options) as bench:
            results["manifest"]["datasets"][name] = bench.dataset.fingerprint
            # Corpora can be measured in separate runs, so each says which code measured it last.
            results["manifest"].setdefault("measured_by", {})[name] = environment()["commit"]
            for question in wanted:
                known[question] = QUESTIONS[question](bench)
                results["corpora"][name] = known
                _write(options.output, results)
                print(f"   {question}", file=sys.stderr, flush=True)
    results["left_out"] = leave_one_out(results["corpora"])
    _write(options.output, results)


def methods(bench: Bench) -> Table:
    measured = {spec: fused(bench, f"{spec} | {PLAIN}") for spec in METHODS}
    rows = {spec: _row(one, measured["rrf(k=60)"]) for spec, one in measured.items()}
    rows["by stratum"] = {
        f"{stratum} {spec}": round(values["nDCG@10"], 4)
        for spec, one in measured.items()
        for stratum, values in one.by_stratum.items()
    }
    return rows


def joint(bench: Bench) -> Table:
    return {spec: _means(fused(bench, f"{spec} | {PLAIN}")) for spec in JOINT}


def choice(bench: Bench) -> Table:
    """Each candidate for the default, against rrf(k=60) and against each leg alone with the same constants."""
    rows: Table = {}
    base = fused(bench, f"rrf(k=60) | {PLAIN}")
    alone: dict[str, Measured] = {}
    for spec in CHOICE:
        measured = fused(bench, f"{spec} | {PLAIN}")
        rows[spec] = _row(measured, base)
        for leg in ("lexical", "dense"):
            single = f"legs({leg}) | {spec.split(' | ', 1)[1]} | {PLAIN}"
            if single not in alone:
                alone[single] = fused(bench, single)
            against = _row(measured, alone[single])
            rows[spec] |= {f"{name} against {leg}": against[name] for name in ("difference", "low", "high")}
    return rows


def depth(bench: Bench) -> Table:
    specs = ("rrf(k=60)", "rrf(k=10)", "convex(norm=zscore)", "convex(norm=minmax)")
    return {
        f"{spec} | depth({deep})": _means(fused(bench, f"{spec} | depth({deep}) | {PLAIN}"))
        for spec in specs
        for deep in DEPTHS
    }


def bm25(bench: Bench) -> Table:
    rows = {f"lexical {spec}": _means(fused(bench, f"legs(lexical) | {spec} | {PLAIN}")) for spec in BM25}
    return rows | {f"fused {spec}": _means(fused(bench, f"{spec} | {PLAIN}")) for spec in BM25}


def match(bench: Bench) -> Table:
    rows = {}
    for legs in ("legs(lexical)", "legs(lexical, dense)"):
        base = fused(bench, f"{legs} | match(any) | {PLAIN}")
        rows[f"{legs} any"] = _means(base)
        rows[f"{legs} all-then-any"] = _row(fused(bench, f"{legs} | match(all-then-any) | {PLAIN}"), base)
    return rows


def bonus(bench: Bench) -> Table:
    base: Measured | None = None
    rows = {}
    for value in BONUSES:
        measured = run_arm(bench, f"bonus({value:g}) | prior(0)", MEASURES, DEEP, collapse=False).measured
        base = base or measured
        rows[f"bonus({value:g})"] = _row(measured, base)
        for stratum, values in measured.by_stratum.items():
            rows[f"bonus({value:g})"][f"nDCG@10 {stratum}"] = round(values["nDCG@10"], 4)
    return rows


def prior(bench: Bench) -> Table:
    """Importances that are honest (what is asked for tends to be rated higher), random, or adversarial."""
    chance = random.Random(0)
    wanted = {memory_id(row.document) for row in bench.dataset.judgements if row.grade > 0}
    ids = [memory_id(document.id) for document in bench.dataset.documents]
    kinds: dict[str, Callable[[str], float]] = {
        "honest": lambda id: chance.betavariate(4, 2) if id in wanted else chance.betavariate(2, 4),
        "random": lambda id: chance.random(),
        "adversarial": lambda id: chance.betavariate(2, 4) if id in wanted else chance.betavariate(4, 2),
    }
    base = fused(bench, f"convex(norm=zscore) | {PLAIN}")
    rows: Table = {}
    for kind, draw in kinds.items():
        importances = {id: draw(id) for id in ids}
        for weight in PRIORS[1:]:
            for spec in ("convex(norm=zscore)", "rrf(k=60)"):
                rows[f"{kind} prior({weight:g}) {spec}"] = _row(_with_prior(bench, spec, weight, importances), base)
    return rows


def passages(bench: Bench) -> Table:
    """A memory by its best passage, against by its first, which is what an embedder that truncates sees."""
    vectors = Vectors(bench)
    cut = {"dense": lambda query: vectors.ranking(query, 100, first_only=True)}
    several = fmean(document_passages > 1 for document_passages in _passage_counts(vectors))
    rows: Table = {"share of memories with several passages": {"share": round(several, 4)}}
    for legs in ("legs(dense)", "legs(lexical, dense)"):
        base = fused(bench, f"{legs} | {PLAIN}", cut)
        rows[f"{legs} first passage"] = _means(base)
        rows[f"{legs} best passage"] = _row(fused(bench, f"{legs} | {PLAIN}"), base)
    return rows


def vectors(bench: Bench) -> Table:
    """Stored float16 against one byte a dimension, and the shortlist by sign bits against exact search."""
    own = Vectors(bench)
    small = as_int8(own.vectors)
    exact = {"dense": lambda query: own.ranking(query, 100)}
    byte = {"dense": lambda query: own.ranking(query, 100, vectors=small)}
    rows: Table = {}
    for legs in ("legs(dense)", "legs(lexical, dense)"):
        base = fused(bench, f"{legs} | {PLAIN}", exact)
        rows[f"{legs} exact"] = _means(base)
        rows[f"{legs} as the product searches"] = _row(fused(bench, f"{legs} | {PLAIN}"), base)
        rows[f"{legs} one byte a dimension"] = _row(fused(bench, f"{legs} | {PLAIN}", byte), base)
    return rows


def baseline(bench: Bench) -> Table:
    """Our lexical leg against plain bm25s, and the whole against dense alone."""
    plain = {"lexical": plain_bm25(bench, 100)}
    theirs = fused(bench, f"legs(lexical) | {PLAIN}", plain)
    dense = fused(bench, f"legs(dense) | {PLAIN}")
    return {
        "bm25s": _means(theirs),
        "lexical leg": _row(fused(bench, f"legs(lexical) | bm25(k1=0.9, b=0.4) | {PLAIN}"), theirs),
        "dense": _means(dense),
        "default": _row(run_arm(bench, "default", MEASURES, DEEP).measured, dense),
        "zscore with bm25s as lexical leg": _means(fused(bench, f"convex(norm=zscore) | {PLAIN}", plain)),
    }


QUESTIONS: Mapping[str, Callable[[Bench], Table]] = {
    "methods": methods,
    "joint": joint,
    "choice": choice,
    "depth": depth,
    "bm25": bm25,
    "match": match,
    "bonus": bonus,
    "prior": prior,
    "passages": passages,
    "vectors": vectors,
    "baseline": baseline,
}


def leave_one_out(corpora: Mapping[str, Mapping[str, Table]]) -> dict[str, Any]:
    """For each corpus the recipe that did best on the others, and what it does on this one."""
    rows: dict[str, Any] = {}
    for name, results in corpora.items():
        others = [other for other in corpora if other != name and other in CORPORA]
        if len(others) < 2 or name not in CORPORA:
            continue
        table = results["choice"]
        chosen = max(table, key=lambda spec: fmean(corpora[other]["choice"][spec]["nDCG@10"] for other in others))
        best = max(table, key=lambda spec: table[spec]["nDCG@10"])
        rows[name] = {
            "chosen on the others": chosen,
            "here": table[chosen],
            "best here": best,
            "best nDCG@10 here": table[best]["nDCG@10"],
            "rrf(k=60)": results["methods"]["rrf(k=60)"]["nDCG@10"],
        }
    return rows


def _with_prior(bench: Bench, spec: str, weight: float, importances: Mapping[str, float]) -> Measured:
    recipe = parse_recipe(completed(f"{spec} | {PLAIN}"))
    run = {}
    for query in bench.dataset.queries:
        filter = Filter(scope=query.scope)
        retrieved = bench.legs.retrieve(bench.trivet.engine, analyse_query(query.text), filter, recipe)
        scored = [
            (one.id, one.score * importance_prior(importances[one.id], weight))
            for one in fuse(recipe.fusion, retrieved.rankings)
        ]
        scored.sort(key=lambda pair: -pair[1])
        run[query.id] = [(bench.name_of(id), -float(rank)) for rank, (id, _) in enumerate(scored[:DEEP])]
    return measure(bench.dataset, run, MEASURES)


def _passage_counts(vectors: Vectors) -> Iterable[int]:
    counts: dict[int, int] = {}
    for key in vectors.keys.tolist():
        counts[key] = counts.get(key, 0) + 1
    return counts.values()


def _means(measured: Measured) -> dict[str, float]:
    return {name: round(value, 4) for name, value in measured.overall.items()}


def _row(measured: Measured, base: Measured) -> dict[str, float]:
    (one,) = paired({"nDCG@10": base.per_query["nDCG@10"]}, {"nDCG@10": measured.per_query["nDCG@10"]}, resamples=2_000)
    interval = {"difference": round(one.difference, 4), "low": round(one.low, 4), "high": round(one.high, 4)}
    return _means(measured) | interval


def _bench(name: str, options: argparse.Namespace) -> Bench:
    return open_bench(house() if name == "house" else import_original(name), options.cache, options.embedder)


def _write(path: Path, results: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", default=[*CORPORA, "house"])
    parser.add_argument("--again", nargs="*", default=[], choices=list(QUESTIONS), help="questions to measure anew")
    parser.add_argument("--cache", type=Path, help="where the stores are kept; the lab's cache if none")
    parser.add_argument("--output", type=Path, default=Path("docs/results/evidence.json"))
    add_embedder(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
