r"""Measure the trained models: each arm against the default fusion on the stock embedder.

TRIVET_DATA=/path/to/originals python benchmarks/studies/trained.py --kept KEPT \
    --output docs/results/trained.json

Every arm uses the whole read path with the shipped int8 files. Results per query stay in KEPT under
the embedder's identity, so a run can continue and models are never mixed. `--queries` limits
rerankers to some queries per corpus (by hash of the id), as each takes a tenth of a second.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from embedder import MINILM, SHIPPED, add_embedder, identity

from trivet.lab.datasets.catalog import import_original
from trivet.lab.datasets.dataset import Dataset
from trivet.lab.datasets.plain_layout import house
from trivet.lab.measure.bench import open_bench
from trivet.lab.measure.comparison import bootstrap_means, paired
from trivet.lab.measure.measures import measure
from trivet.lab.measure.run import environment
from trivet.models.rerank.registry import PRESETS

CORPORA = ("locomo", "lihua", "scifact", "cranfield", "cosqa", "hotpotqa", "musique")
MEASURES = ("nDCG@10", "recall@5")
DEEP = 20
RESAMPLES = 2_000
# Results must not depend on how busy the machine is.
NO_HURRY_MS = 600_000


class Arm(msgspec.Struct, frozen=True):
    """`bundled` stands for the studied embedder."""

    embedder: str
    recipe: str = "default"

    @property
    def reads_pairs(self) -> bool:
        return "rerank" in self.recipe


BASE = "stock embedder"
ARMS: Mapping[str, Arm] = {
    BASE: Arm(MINILM),
    "stock embedder, z-scores of words and vectors": Arm(
        MINILM, "convex(norm=zscore) | legs(lexical, dense)"
    ),
    "stock embedder, dense alone": Arm(MINILM, "legs(dense)"),
    "bundled embedder": Arm("bundled"),
    "bundled embedder, dense alone": Arm("bundled", "legs(dense)"),
    **{f"bundled embedder, rerank {name}": Arm("bundled", f"rerank({name})") for name in PRESETS},
}
PerQuery = dict[str, dict[str, float]]


def main() -> None:
    options = _options()
    options.kept.mkdir(parents=True, exist_ok=True)
    for name in options.corpora:
        dataset = house() if name == "house" else import_original(name)
        for arm in options.arms:
            _kept(options, dataset, arm)
    results = summary(options)
    options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(table(results))


def _kept(options: argparse.Namespace, dataset: Dataset, arm: str) -> None:
    file = _file(options, dataset.name, arm)
    if file.exists():
        return
    how = ARMS[arm]
    chosen = _sample(dataset, options.queries) if how.reads_pairs else dataset
    print(f"{dataset.name}: {arm}, {len(chosen.queries)} queries", file=sys.stderr, flush=True)
    embedder = _embedder(options, arm)
    with open_bench(dataset, options.cache, embedder, rerank_time_limit_ms=NO_HURRY_MS) as bench:
        run = {query.id: bench.ranked(query, how.recipe, DEEP) for query in chosen.queries}
    lists = {
        query: [(document, -float(rank)) for rank, (document, _) in enumerate(found)]
        for query, found in run.items()
    }
    measured = measure(chosen, lists, MEASURES)
    file.write_text(
        json.dumps({name: dict(values) for name, values in measured.per_query.items()}),
        encoding="utf-8",
    )


def _file(options: argparse.Namespace, corpus: str, arm: str) -> Path:
    model = identity(_embedder(options, arm)).replace("/", "-")
    return Path(options.kept / f"{corpus}-{arm.replace(', ', '-').replace(' ', '_')}-{model}.json")


def _embedder(options: argparse.Namespace, arm: str) -> str:
    named = ARMS[arm].embedder
    return str(options.embedder) if named == SHIPPED else named


def _sample(dataset: Dataset, most: int | None) -> Dataset:
    answerable = [query for query in dataset.queries if query.id not in set(dataset.unanswerable)]
    chosen = sorted(answerable, key=lambda query: zlib.crc32(query.id.encode()))[:most]
    ids = {query.id for query in chosen}
    return replace(
        dataset,
        queries=tuple(chosen),
        judgements=tuple(row for row in dataset.judgements if row.query in ids),
    )


def summary(options: argparse.Namespace) -> dict[str, Any]:
    """Return every arm's means and differences; each corpus counts the same."""
    kept = {
        (corpus, arm): json.loads(file.read_text(encoding="utf-8"))
        for corpus in options.corpora
        for arm in options.arms
        if (file := _file(options, corpus, arm)).exists()
    }
    rows: dict[str, Any] = {}
    for arm in options.arms:
        rows[arm] = {
            corpus: _row(kept, corpus, arm) for corpus in options.corpora if (corpus, arm) in kept
        }
        public = [corpus for corpus in CORPORA if corpus in rows[arm]]
        if arm != BASE and public:
            rows[arm]["mean difference"] = _mean_difference(kept, public, arm)
    return {
        "manifest": environment()
        | {"embedders": {arm: identity(_embedder(options, arm)) for arm in options.arms}},
        "base": BASE,
        "queries a reranker was asked": options.queries,
        "arms": rows,
    }


def _row(kept: Mapping[tuple[str, str], PerQuery], corpus: str, arm: str) -> dict[str, Any]:
    values = kept[corpus, arm]
    row: dict[str, Any] = {
        name: round(float(np.mean(list(values[name].values()))), 4) for name in MEASURES
    }
    row["queries"] = len(values["nDCG@10"])
    if arm != BASE:
        base = {
            name: {query: kept[corpus, BASE][name][query] for query in values[name]}
            for name in MEASURES
        }
        for one in paired(base, {name: values[name] for name in MEASURES}, resamples=RESAMPLES):
            row[f"{one.measure} difference"] = [
                round(one.difference, 4),
                round(one.low, 4),
                round(one.high, 4),
            ]
            row[f"{one.measure} base"] = round(one.base, 4)
    return row


def _mean_difference(
    kept: Mapping[tuple[str, str], PerQuery], corpora: Sequence[str], arm: str
) -> list[float]:
    differences = [
        np.array([value - kept[corpus, BASE]["nDCG@10"][query] for query, value in values.items()])
        for corpus in corpora
        for values in [kept[corpus, arm]["nDCG@10"]]
    ]
    drawn = np.mean(
        [
            bootstrap_means(one[:, None], RESAMPLES, seed)[:, 0]
            for seed, one in enumerate(differences)
        ],
        axis=0,
    )
    low, high = np.quantile(drawn, [0.025, 0.975])
    return [
        round(float(value), 4)
        for value in (np.mean([one.mean() for one in differences]), low, high)
    ]


def table(results: Mapping[str, Any]) -> str:
    """Return Markdown: nDCG@10 / recall@5, marked where the difference's interval excludes 0."""
    corpora = list(results["arms"][BASE])
    lines = [f"| | {' | '.join(corpora)} | mean difference |", "|---" * (len(corpora) + 2) + "|"]
    asked_few = False
    for arm, rows in results["arms"].items():
        # Results may hold arms of an earlier version, which no longer run.
        if arm in ARMS and ARMS[arm].reads_pairs and not asked_few:
            asked_few = True
            cells = [_base_cell(rows[corpus]) if corpus in rows else "" for corpus in corpora]
            lines.append(
                f"| {BASE}, of the queries that rerankers were asked | {' | '.join(cells)} | |"
            )
        cells = [_cell(rows[corpus]) if corpus in rows else "" for corpus in corpora]
        mean = rows.get("mean difference")
        shown = f"{mean[0]:+.4f} [{mean[1]:.4f}, {mean[2]:.4f}]" if mean else ""
        lines.append(f"| {arm} | {' | '.join(cells)} | {shown} |")
    return "\n".join(lines)


def _base_cell(row: Mapping[str, Any]) -> str:
    return f"{row['nDCG@10 base']:.3f} / {row['recall@5 base']:.3f} ({row['queries']})".replace(
        "0.", "."
    )


def _cell(row: Mapping[str, Any]) -> str:
    difference = row.get("nDCG@10 difference")
    mark = (
        "" if difference is None else "+" if difference[1] > 0 else "-" if difference[2] < 0 else ""
    )
    return f"{row['nDCG@10']:.3f}{mark} / {row['recall@5']:.3f}".replace("0.", ".")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpora", nargs="+", default=[*CORPORA, "house"])
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=list(ARMS))
    parser.add_argument(
        "--queries", type=int, help="queries per corpus for rerankers (default: all)"
    )
    parser.add_argument(
        "--cache", type=Path, help="where the stores are kept; the lab's cache if none"
    )
    parser.add_argument("--kept", type=Path, required=True, help="where each arm's values are kept")
    parser.add_argument("--output", type=Path, default=Path("docs/results/trained.json"))
    add_embedder(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
