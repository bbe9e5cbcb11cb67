r"""Measure what length-fair fusion gains and costs (docs/decisions/0031): two recipes.

TRIVET_DATA=... python benchmarks/studies/lengths.py mixed/dev mixed-passages sessions cosqa \
    --queries 200

For each dataset: nDCG@10 of both, the difference with its 95 % interval, and the median lengths of
hits and answers.
"""

from __future__ import annotations

import argparse
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
from embedder import add_embedder

from trivet.lab.datasets.catalog import IMPORTERS, find_dataset, import_original
from trivet.lab.datasets.dataset import Dataset
from trivet.lab.measure.bench import open_bench
from trivet.lab.measure.run import run_arm

BEFORE = (
    "convex(norm=spread, norm.graph=raw, lexical=1, dense=8, graph=8) | chance(0) | walk(even=0)"
)
MEASURE = "nDCG@10"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="+")
    parser.add_argument(
        "--queries",
        type=int,
        default=200,
        help="queries per dataset, drawn by a hash of their ids (200)",
    )
    parser.add_argument("--cache", type=Path, help="where loaded stores are kept")
    add_embedder(parser)
    given = parser.parse_args()
    for name in given.datasets:
        dataset = import_original(name) if name in IMPORTERS else find_dataset(name)
        print(f"{name}: {compared(dataset, given)}", flush=True)


def compared(dataset: Dataset, given: argparse.Namespace) -> str:
    with open_bench(dataset, given.cache, given.embedder) as bench:
        bench.dataset = some(dataset, given.queries)
        before, now = run_arm(bench, BEFORE), run_arm(bench, "default")
    values = [np.array(list(arm.measured.per_query[MEASURE].values())) for arm in (before, now)]
    difference = values[1] - values[0]
    half = 1.96 * difference.std() / np.sqrt(len(difference))
    lengths = "; ".join(
        f"{one.hits:.0f}/{one.answers:.0f} words"
        for arm in (before, now)
        if (one := arm.lengths.overall)
    )
    return f"{values[0].mean():.4f} -> {values[1].mean():.4f} ({difference.mean():+.4f} +- {half:.4f}), {lengths}"


def some(dataset: Dataset, count: int) -> Dataset:
    answerable = [query for query in dataset.queries if query.id not in set(dataset.unanswerable)]
    drawn = sorted(answerable, key=lambda query: hashlib.sha256(query.id.encode()).hexdigest())[
        :count
    ]
    ids = {query.id for query in drawn}
    return replace(
        dataset,
        queries=tuple(drawn),
        judgements=tuple(row for row in dataset.judgements if row.query in ids),
    )


if __name__ == "__main__":
    main()
