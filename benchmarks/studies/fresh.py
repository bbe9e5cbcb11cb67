"""Measure whether a memory without a stored vector ranks as it does with one.

python benchmarks/studies/fresh.py [--cases 100] [--out docs/results/fresh.json]

Each case takes the best memory of a house-set question. *Fresh*: all else is embedded and this one
was just written; compare its rank after the worker has run. *Sensitive*: it never has a vector;
compare its rank as an ordinary memory.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from embedder import add_embedder, identity

from trivet import Trivet
from trivet.lab.datasets.dataset import Dataset, Query
from trivet.lab.datasets.plain_layout import house
from trivet.lab.measure.bench import memory_id
from trivet.lab.measure.run import environment

BEST = 3
DEEPEST = 50


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--out", type=Path)
    add_embedder(parser)
    options = parser.parse_args()
    dataset = house()
    cases = _cases(dataset, options.cases)
    with tempfile.TemporaryDirectory() as folder, _opened(Path(folder), options.embedder) as memory:
        memory.remember_many([_fields(document) for document in dataset.documents])
        memory.drain()
        fresh = [_fresh(memory, query, id) for query, id in cases]
        sensitive = [_sensitive(memory, query, id) for query, id in cases]
    about = environment() | {"embedder": identity(options.embedder)}
    report = {"fresh": _summary(fresh), "sensitive": _summary(sensitive), "manifest": about}
    print(json.dumps({name: report[name] for name in ("fresh", "sensitive")}, indent=1))
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _opened(folder: Path, embedder: str) -> Trivet:
    return Trivet.open(folder / "house.db", background=False, embedder=embedder)


def _cases(dataset: Dataset, most: int) -> list[tuple[Query, str]]:
    by_stratum = [list(ids) for name, ids in dataset.strata.items() if name != "superseded"]
    queries = {query.id: query for query in dataset.queries}
    order = [
        ids[place]
        for place in range(max(map(len, by_stratum)))
        for ids in by_stratum
        if place < len(ids)
    ]
    found = []
    for id in order:
        best = [document for document, grade in dataset.grades[id].items() if grade >= BEST]
        if best:
            found.append((queries[id], memory_id(best[0])))
    return found[:most]


def _fields(document: Any) -> dict[str, Any]:
    return {
        "id": memory_id(document.id),
        "content": document.text,
        "title": document.title,
        "scope": document.scope,
    }


def _rank(memory: Trivet, query: Query, id: str) -> int:
    answer = memory.recall(
        query.text, scope=query.scope, limit=DEEPEST, relevance_at_least=0.0, collapse=False
    )
    return next((hit.rank for hit in answer.hits if hit.id == id), DEEPEST + 1)


def _fresh(memory: Trivet, query: Query, id: str) -> tuple[int, int]:
    """An edit removes the vector until the worker has run, as for a new memory."""
    text = memory.get(id).content
    memory.edit(id, content=f"{text} ")
    at_once = _rank(memory, query, id)
    memory.drain()
    return at_once, _rank(memory, query, id)


def _sensitive(memory: Trivet, query: Query, id: str) -> tuple[int, int]:
    memory.edit(id, sensitive=True)
    hidden = _rank(memory, query, id)
    memory.edit(id, sensitive=False)
    memory.drain()
    return hidden, _rank(memory, query, id)


def _summary(ranks: list[tuple[int, int]]) -> dict[str, Any]:
    lost = [without - with_vector for without, with_vector in ranks]
    return {
        "cases": len(ranks),
        "same_rank": sum(one == 0 for one in lost),
        "median_lost": statistics.median(lost),
        "mean_lost": round(statistics.mean(lost), 2),
        "lost_more_than_one": sum(one > 1 for one in lost),
        "first_without": sum(without == 1 for without, _ in ranks),
        "first_with": sum(with_vector == 1 for _, with_vector in ranks),
    }


if __name__ == "__main__":
    main()
