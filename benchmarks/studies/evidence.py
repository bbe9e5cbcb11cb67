"""Test the retrieval defaults: each choice made on some collections and tested on the others.

TRIVET_DATA=/path/to/originals python benchmarks/studies/evidence.py --kept KEPT --queries 250
python benchmarks/studies/evidence_report.py docs/results/evidence.json

Eleven collections: seven public ones and four of mixed length, like a user's store. `house`, our
own small set, is reported but chooses nothing. Results per collection stay in KEPT, so a run can
continue. All figures use one embedder, by default the shipped one.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from choosing import GROUPS, Measured, by_question, left_out, mean_of, row
from embedder import add_embedder, identity
from lengths import some
from pools import DEEP, Pool, Values, dataset_named, features, measured, pools
from stored_vectors import Vectors, as_int8

from trivet.lab.measure.bench import Bench, memory_id, open_bench
from trivet.lab.measure.run import environment, run_arm
from trivet.search.recipe import DEFAULT
from trivet.search.relevance import importance_prior

CORPORA = (*GROUPS, "house")
# Weights are lexical/dense/graph. Only ratios matter, so dense is always 12.
SHIPPED = "spread {lexical:g}/{dense:g}/{graph:g}".format(**DEFAULT.fusion.weights)
WITHOUT_GRAPH = SHIPPED.rpartition("/")[0] + "/0"
LEXICAL = (0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1, 1.25, 1.5, 2, 3)
GRAPH = (0, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32)
SPREAD = [f"spread {lexical:g}/12/{graph:g}" for lexical, graph in product(LEXICAL, GRAPH)]
SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


def _shared(method: str, shares: Sequence[float], graph: Sequence[float]) -> list[str]:
    return [
        f"{method} {1 - share:g}/{share:g}/{weight:g}" for share, weight in product(shares, graph)
    ]


# The graph's weight depends on the norm's scale; each range contains its best.
METHODS: Mapping[str, Sequence[str]] = {
    "spread": SPREAD,
    "zscore": _shared("zscore", SHARES, (0, 4, 8, 12, 16, 24)),
    "minmax": _shared("minmax", SHARES, (0, 1, 2, 3, 4, 6)),
    "dbsf": _shared("dbsf", SHARES, (0, 0.5, 1, 2, 3, 4)),
    "tmm": _shared("tmm", (*SHARES, 0.9, 0.95), (0, 0.25, 0.5, 1, 2)),
    "rrf": [one for k in (10, 60) for one in _shared(f"rrf{k}", SHARES, (0, 0.1, 0.25, 0.5, 1))],
}
EVERYTHING = [label for labels in METHODS.values() for label in labels]
ALONE = ("spread 1/0/0", "spread 0/1/0")
# Ways to retrieve; the first of each question ships.
AS_SHIPPED = "as shipped"
BM25 = [(k1, b) for k1, b in product((0.9, 1.2), (0.4, 0.6, 0.75, 1)) if (k1, b) != (0.9, 0.4)]
WAYS: Mapping[str, Sequence[str]] = {
    # k1 = 0.9 and b = 0.4 ship.
    "bm25": [AS_SHIPPED, *(f"bm25(k1={k1}, b={b})" for k1, b in BM25)],
    "depth": [AS_SHIPPED, "depth(20)", "depth(30)", "depth(100)"],
    "chance": [AS_SHIPPED, "chance(0)", "chance(0.2)", "chance(0.5)"],
}
SEARCHES = ("vectors exact", "vectors of one byte a dimension", "vectors by the product's search")
PRIOR_WEIGHTS = (0.1, 0.3, 0.5)
PRIORS = [
    f"{kind} prior({weight})"
    for kind, weight in product(("honest", "random", "adversarial"), PRIOR_WEIGHTS)
]
# 0.05 ships.
BONUSES = ("bonus(0)", "bonus(0.2)")
OF_WORDS = "lexical weight and chance left out"


def main() -> None:
    options = _options()
    options.kept.mkdir(parents=True, exist_ok=True)
    corpora = {name: _kept(name, options, "fused", fused) for name in CORPORA}
    results: dict[str, Any] = {"manifest": manifest(options, corpora), **conclusions(corpora)}
    # The fusion's own choice is repeated through whole recalls, which also measure the bonus.
    chosen = [results["methods"]["spread"]["setting"], results[OF_WORDS]["on all"]]
    asked = {one: effective_recipe(one) for one in (SHIPPED, WITHOUT_GRAPH, *chosen)} | {
        one: one for one in BONUSES
    }
    whole = {
        name: _kept(name, options, _hash(asked), lambda bench: recalled(bench, asked))
        for name in CORPORA
    }
    results["whole recalls"] = {one: row(whole, one, SHIPPED) for one in asked}
    options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def manifest(options: argparse.Namespace, corpora: Mapping[str, Measured]) -> dict[str, Any]:
    return environment() | {
        "command": f"python benchmarks/studies/evidence.py --queries {options.queries}",
        "embedder": identity(options.embedder),
        "recipe": str(DEFAULT),
        "queries": {name: len(one.values) for name, one in corpora.items()},
        "datasets": {name: dataset_named(name).fingerprint for name in CORPORA},
    }


def fused(bench: Bench) -> Measured:
    """Measure every fusion by the shipped retrieval, and the weight pairs by the others."""
    columns: dict[str, Values] = {}
    for way in dict.fromkeys(way for ways in WAYS.values() for way in ways):
        _say(f"   {way}")
        found = pools(bench, "" if way == AS_SHIPPED else way)
        labels = [*EVERYTHING, *ALONE] if way == AS_SHIPPED else SPREAD
        table = measured(found, [effective_recipe(label) for label in labels])
        columns |= {_setting(label, way): table[:, place] for place, label in enumerate(labels)}
        columns[f"words, {way}"] = words_of_hits(found)
        if way == AS_SHIPPED:
            columns |= prior(bench, found) | features(bench, found)
    columns |= searched_otherwise(bench)
    return Measured(list(columns), np.column_stack(list(columns.values())))


def recalled(bench: Bench, recipes: Mapping[str, str]) -> Measured:
    """Recall through the whole read path, with bonus, prior, folding, links and recency."""
    arms = [
        run_arm(bench, one, ("nDCG@10",), DEEP).measured.per_query["nDCG@10"]
        for one in recipes.values()
    ]
    rows = [[arm[query.id] for arm in arms] for query in bench.dataset.queries]
    return Measured(list(recipes), np.array(rows))


def searched_otherwise(bench: Bench) -> dict[str, Values]:
    """Search vectors only: exactly, in one byte per dimension, and as the product does."""
    own = Vectors(bench)
    small = as_int8(own.vectors)
    found: dict[str, list[float]] = {name: [] for name in SEARCHES}
    for pool in pools(bench, "legs(dense) | chance(0)"):
        lists = (
            own.ranking(pool.query, DEEP),
            own.ranking(pool.query, DEEP, vectors=small),
            *pool.rankings,
        )
        for name, ranking in zip(SEARCHES, lists, strict=True):
            found[name].append(pool.worth_of([one.id for one in ranking.candidates[:DEEP]]))
    return {name: np.array(values) for name, values in found.items()}


def prior(bench: Bench, found: Sequence[Pool]) -> dict[str, Values]:
    """Test importances that are honest (answers tend to be rated higher), random or adversarial."""
    chance = random.Random(0)
    wanted = {memory_id(one.document) for one in bench.dataset.judgements if one.grade > 0}
    draws: Mapping[str, Callable[[str], float]] = {
        "honest": lambda id: chance.betavariate(4, 2) if id in wanted else chance.betavariate(2, 4),
        "random": lambda id: chance.random(),
        "adversarial": lambda id: (
            chance.betavariate(2, 4) if id in wanted else chance.betavariate(4, 2)
        ),
    }
    columns = {}
    for kind, draw in draws.items():
        importances = {
            memory_id(one.id): draw(memory_id(one.id)) for one in bench.dataset.documents
        }
        for weight in PRIOR_WEIGHTS:
            columns[f"{kind} prior({weight})"] = with_prior(found, importances, weight)
    return columns


def with_prior(found: Sequence[Pool], importances: Mapping[str, float], weight: float) -> Values:
    """Weigh as the product does: the fused score between 0 and 1, times the prior."""
    values = []
    for pool in found:
        scores = pool.shipped_scores()
        factors = np.array([importance_prior(importances[id], weight) for id in pool.ids])
        stretched = (scores - scores.min()) / (np.ptp(scores) or 1.0) if len(scores) else scores
        values.append(float(pool.worth(np.argsort(-stretched * factors, kind="stable")[:DEEP])))
    return np.array(values)


def words_of_hits(found: Sequence[Pool]) -> Values:
    """Return the median length of each question's first ten hits, with the shipped weights."""
    return np.array(
        [np.median(pool.lengths[np.argsort(-pool.shipped_scores())[:DEEP]]) for pool in found]
    )


def conclusions(corpora: Mapping[str, Measured]) -> dict[str, Any]:
    """Return settings with intervals for each question, and the leave-one-out choices."""
    of_words = [f"spread {lexical:g}/12/12" for lexical in LEXICAL]
    some_way = {
        name: [_setting(label, way) for way in ways for label in SPREAD]
        for name, ways in WAYS.items()
    }
    return {
        "methods": {name: _best(corpora, labels) for name, labels in METHODS.items()},
        "methods left out": {
            name: left_out(corpora, labels, SHIPPED) for name, labels in METHODS.items()
        },
        "weights": {label: row(corpora, label, SHIPPED) for label in (*SPREAD, *ALONE)},
        **{question: {way: _by(corpora, way) for way in ways} for question, ways in WAYS.items()},
        **{
            f"weights and {name} left out": left_out(corpora, some_way[name], SHIPPED)
            for name in WAYS
        },
        # Uses the shipped graph weight: without Wikipedia, no collection supports any.
        OF_WORDS: left_out(
            corpora, [_setting(one, way) for way in WAYS["chance"] for one in of_words], SHIPPED
        ),
        "prior": {label: row(corpora, label, SHIPPED) for label in PRIORS},
        "vectors": {label: row(corpora, label, SEARCHES[0]) for label in SEARCHES},
        "by question": by_question(corpora, of_words, SHIPPED),
    }


def _best(corpora: Mapping[str, Measured], labels: Sequence[str]) -> dict[str, Any]:
    best = max(labels, key=lambda label: mean_of(corpora, label))
    return {"setting": best} | row(corpora, best, SHIPPED)


def _by(corpora: Mapping[str, Measured], way: str) -> dict[str, Any]:
    words = {name: float(np.median(one.of(f"words, {way}"))) for name, one in corpora.items()}
    return row(corpora, _setting(SHIPPED, way), SHIPPED) | {"median words of the hits": words}


def effective_recipe(setting: str) -> str:
    """Turn `spread 0.7/12/12 | depth(100)` into a recipe."""
    label, _, way = setting.partition(" | ")
    method, _, weights = label.partition(" ")
    lexical, dense, graph = weights.split("/")
    legs = f"lexical={lexical}, dense={dense}, graph={graph}"
    by_rank = method.startswith("rrf")
    fusion = (
        f"rrf(k={method[3:]}, {legs})"
        if by_rank
        else f"convex(norm={method}, norm.graph=raw, {legs})"
    )
    return f"{fusion} | {way}" if way else fusion


def _setting(label: str, way: str = AS_SHIPPED) -> str:
    return label if way == AS_SHIPPED else f"{label} | {way}"


def _kept(
    name: str, options: argparse.Namespace, what: str, ask: Callable[[Bench], Measured]
) -> Measured:
    model = identity(options.embedder).replace("/", "-")
    file = options.kept / f"{name.replace('/', '-')}-{options.queries}-{what}-{model}.npz"
    if not file.exists():
        dataset = dataset_named(name)
        _say(f"{name}: {what}")
        with open_bench(dataset, options.cache, options.embedder) as opened:
            ask(Bench(some(dataset, options.queries), opened.trivet)).save(file)
    return Measured.load(file)


def _hash(recipes: Mapping[str, str]) -> str:
    return f"whole-{zlib.crc32(' '.join(recipes.values()).encode()):x}"


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--queries",
        type=int,
        default=250,
        help="queries per collection, drawn by a hash of their ids (250)",
    )
    parser.add_argument(
        "--kept", type=Path, required=True, help="where what was measured of a collection is kept"
    )
    parser.add_argument(
        "--cache", type=Path, help="where the stores are kept; the lab's cache if none"
    )
    parser.add_argument("--output", type=Path, default=Path("docs/results/evidence.json"))
    add_embedder(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
