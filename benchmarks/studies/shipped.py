r"""Measure a fresh install: default recipe and shipped embedder on every corpus, with intervals.

Arms: no second look, and each of the three second looks.

TRIVET_DATA=/path/to/originals python benchmarks/studies/shipped.py [--corpora locomo ...] \
    [--cache STORES]

Needs no other model, so it is the quick study after a change of embedder or weights; `trained.py`
compares models. Results with the same embedder, recipe and rerankers are reused. `--arms
NAME=RECIPE ...` measures others; docs/results/blends.json uses `"fast 0.15=rerank(fast,
blend=0.15)"` and so on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from embedder import add_embedder, identity

from trivet.lab.datasets.catalog import import_original
from trivet.lab.datasets.plain_layout import house
from trivet.lab.measure.bench import open_bench
from trivet.lab.measure.comparison import bootstrap_means
from trivet.lab.measure.measures import measure
from trivet.lab.measure.run import environment
from trivet.models.rerank.registry import PRESETS
from trivet.search.recipe import Recipe

CORPORA = ("locomo", "lihua", "scifact", "cranfield", "cosqa", "hotpotqa", "musique")
ARMS = {
    "default": "default",
    "vectors alone": "legs(dense)",
    "words alone": "legs(lexical)",
    "both by rank": "rrf(k=60) | legs(lexical, dense)",
    "without the graph": "legs(lexical, dense)",
    # What a fresh install does; the arms above have no second look.
    "read when unsure": "rerank(auto)",
    "fast": "rerank(fast)",
    "best": "rerank(best)",
}
MEASURES = ("nDCG@10", "recall@5")
DEEP = 20
RESAMPLES = 2_000


def main() -> None:
    options = _options()
    presets = {
        name: f"{one.folder}, top={one.top}, blend={one.blend}" for name, one in PRESETS.items()
    }
    of_this = {"embedder": identity(options.embedder), "recipe": str(Recipe()), "rerank": presets}
    known = (
        json.loads(options.output.read_text(encoding="utf-8")) if options.output.exists() else {}
    )
    corpora = known["corpora"] if known.get("manifest", {}).get("of") == of_this else {}
    for name in options.corpora:
        if missing := {
            arm: recipe for arm, recipe in options.arms.items() if arm not in corpora.get(name, {})
        }:
            corpora[name] = corpora.get(name, {}) | measured(name, missing, options)
            commits = {
                known.get("manifest", {}).get("commit"),
                *known.get("manifest", {}).get("commits", []),
            } - {None}
            manifest = environment() | {
                "of": of_this,
                "commits": sorted({*commits, environment()["commit"]}),
            }
            results = {
                "manifest": manifest,
                "corpora": corpora,
                "mean of seven": mean(corpora, options.arms),
            }
            options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
            print(name, corpora[name], flush=True)
    print("mean of seven:", mean(corpora, options.arms))


def measured(name: str, arms: Mapping[str, str], options: argparse.Namespace) -> dict[str, Any]:
    dataset = house() if name == "house" else import_original(name)
    found: dict[str, Any] = {}
    with open_bench(dataset, options.cache, options.embedder) as bench:
        for arm, recipe in arms.items():
            run = {query.id: bench.ranked(query, recipe, DEEP) for query in dataset.queries}
            lists = {
                query: [(one, -float(rank)) for rank, (one, _) in enumerate(hits)]
                for query, hits in run.items()
            }
            per_query = measure(dataset, lists, MEASURES).per_query
            found[arm] = {one: with_interval(list(per_query[one].values())) for one in MEASURES}
            found["queries"] = len(per_query[MEASURES[0]])
    return found


def with_interval(values: list[float]) -> list[float]:
    drawn = bootstrap_means(np.array(values)[:, None], RESAMPLES, 0)[:, 0]
    return [
        round(float(value), 4) for value in (np.mean(values), *np.quantile(drawn, (0.025, 0.975)))
    ]


def mean(corpora: Mapping[str, Any], arms: Iterable[str]) -> dict[str, float]:
    """Return mean nDCG@10 by arm once all seven corpora are there."""
    whole = [arm for arm in arms if all(arm in corpora.get(name, {}) for name in CORPORA)]
    return {
        arm: round(float(np.mean([corpora[name][arm]["nDCG@10"][0] for name in CORPORA])), 4)
        for arm in whole
    }


def _arm(text: str) -> tuple[str, str]:
    name, _, recipe = text.partition("=")
    return name, recipe


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpora", nargs="+", default=["house", *CORPORA])
    parser.add_argument(
        "--cache", type=Path, help="where the stores are kept; the lab's cache if none"
    )
    parser.add_argument("--output", type=Path, default=Path("docs/results/shipped.json"))
    parser.add_argument(
        "--arms", nargs="+", type=_arm, help="NAME=RECIPE: what is measured instead"
    )
    add_embedder(parser)
    options = parser.parse_args()
    options.arms = dict(options.arms or ARMS)
    return options


if __name__ == "__main__":
    main()
