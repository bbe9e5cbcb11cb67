"""Measure the sort orders of an answer: relevance, recency and importance, on the lab's lives.

python benchmarks/studies/sort_modes.py --output docs/results/sort_modes.json

A sort only reorders hits, so each question is recalled once as a caller would (noise dropped, at
most ten hits) and put into each order. The lives have dates but no importances, which are drawn
honestly (answers tend to be rated higher) or at random. Relevance puts the later of two memories on
one matter first (docs/changed-facts.md); one more order does not.
"""

from __future__ import annotations

import argparse
import json
import random
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np
from embedder import add_embedder, identity

from trivet.lab.datasets.dataset import Dataset, Query
from trivet.lab.datasets.plain_layout import load
from trivet.lab.measure.bench import Bench, memory_id, open_bench
from trivet.lab.measure.comparison import paired
from trivet.lab.measure.run import environment
from trivet.memory import recall as recalls
from trivet.memory.answer.choose import sort_hits
from trivet.memory.answer.decision import ScoredCandidate

LIVES = Path(__file__).parents[2] / "src" / "trivet" / "lab" / "lives" / "dev"
# From this grade on, a memory answers or helps; below, only its topic matches.
ANSWERS = 2
MOST = 10
FIRST = 3
RESAMPLES = 2_000
BASE = "relevance"
AS_FOUND = "relevance, later not first"
ORDERS = (BASE, AS_FOUND, "recency", "importance, honest", "importance, random")
Importances = Mapping[str, Mapping[str, float]]


class Placed(msgspec.Struct, frozen=True):
    """A question and, for each order, the grades of its hits."""

    query: str
    stratum: str
    grades: dict[str, list[int]]
    ideal: list[int]


def main() -> None:
    options = _options()
    rows = [
        row
        for folder in sorted(LIVES.iterdir())
        if folder.is_dir()
        for row in _life(folder, options)
    ]
    strata = {
        "all": rows,
        **{name: [row for row in rows if row.stratum == name] for name in _strata(rows)},
    }
    about = {
        "command": "python benchmarks/studies/sort_modes.py",
        "embedder": identity(options.embedder),
    }
    results = {
        "manifest": environment() | about,
        "hits": round(fmean(len(row.grades[BASE]) for row in rows), 2),
        "strata": {name: _figures(some) for name, some in strata.items()},
    }
    options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results["strata"], indent=1))


def _life(folder: Path, options: argparse.Namespace) -> list[Placed]:
    dataset = load(folder, allow_unanswerable=True)
    drawn = importances(dataset)
    with open_bench(dataset, options.cache, options.embedder) as bench:
        bench.trivet.engine.worker.compare()  # Detects updates, which the lab skips by default.
        return [
            _placed(bench, query, drawn) for query in dataset.queries if _answered(dataset, query)
        ]


def _answered(dataset: Dataset, query: Query) -> bool:
    return any(grade >= ANSWERS for grade in dataset.grades[query.id].values())


def importances(dataset: Dataset) -> Importances:
    """Return importances by kind and memory. Honest ones misrate about one pair in five."""
    wanted = {row.document for row in dataset.judgements if row.grade >= ANSWERS}
    chance = random.Random(zlib.crc32(dataset.name.encode()))
    ids = [document.id for document in dataset.documents]
    honest = {
        id: chance.betavariate(4, 2) if id in wanted else chance.betavariate(2, 4) for id in ids
    }
    return {"importance, honest": honest, "importance, random": {id: chance.random() for id in ids}}


def _placed(bench: Bench, query: Query, drawn: Importances) -> Placed:
    hits = bench.ask(query, "default", MOST, relevance_at_least=None).hits
    with patch.object(recalls, "order_newer_first", _as_it_is):
        as_found = bench.ask(query, "default", MOST, relevance_at_least=None).hits
    grades = bench.dataset.grades[query.id]

    def graded(order: Sequence[ScoredCandidate]) -> list[int]:
        return [grades.get(bench.name_of(hit.memory.id), 0) for hit in order]

    orders = {name: graded(sort_hits(hits, name)) for name in (BASE, "recency")}
    orders[AS_FOUND] = graded(as_found)
    for kind, values in drawn.items():
        rated = {memory_id(id): value for id, value in values.items()}
        orders[kind] = graded(
            sort_hits([_rated(hit, rated[hit.memory.id]) for hit in hits], "importance")
        )
    ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    return Placed(query.id, query.stratum or "", orders, ideal)


def _as_it_is(
    store: object, question: object, candidates: Sequence[ScoredCandidate], *_: object, **__: object
) -> Sequence[ScoredCandidate]:
    return candidates


def _rated(hit: ScoredCandidate, importance: float) -> ScoredCandidate:
    return msgspec.structs.replace(
        hit, memory=msgspec.structs.replace(hit.memory, importance=importance)
    )


def _figures(rows: Sequence[Placed]) -> dict[str, Any]:
    base = {row.query: ndcg(row.grades[BASE], row.ideal) for row in rows}
    found: dict[str, Any] = {"questions": len(rows)}
    for order in ORDERS:
        values = {row.query: ndcg(row.grades[order], row.ideal) for row in rows}
        (one,) = paired({"nDCG@10": base}, {"nDCG@10": values}, resamples=RESAMPLES)
        found[order] = {
            "nDCG@10": round(one.candidate, 4),
            "difference": [round(value, 4) for value in (one.difference, one.low, one.high)],
            "first answers": round(
                fmean(any(g >= ANSWERS for g in row.grades[order][:1]) for row in rows), 4
            ),
            f"an answer in the first {FIRST}": round(
                fmean(any(g >= ANSWERS for g in row.grades[order][:FIRST]) for row in rows), 4
            ),
        }
    return found


def ndcg(grades: Sequence[int], ideal: Sequence[int]) -> float:
    def gain(values: Sequence[int]) -> float:
        return float(sum(value / np.log2(place + 2) for place, value in enumerate(values[:MOST])))

    return gain(grades) / gain(ideal)


def _strata(rows: Sequence[Placed]) -> list[str]:
    return sorted({row.stratum for row in rows})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--cache", type=Path, help="where the stores are kept; the lab's cache if none"
    )
    parser.add_argument("--output", type=Path, default=Path("docs/results/sort_modes.json"))
    add_embedder(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
