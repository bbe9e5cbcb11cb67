r"""Measure recall and cost of PostgreSQL's HNSW index against exact search, by ef_search.

TRIVET_DATA=/path/to/originals python benchmarks/studies/hnsw.py \
    --url postgresql://trivet@... cosqa
python benchmarks/studies/hnsw.py --url ... --administrator postgresql://postgres@... \
    --made-up 50000
python benchmarks/studies/hnsw_report.py docs/results/hnsw.json

The database needs pgvector. Corpora are the lab's stores, copied with vectors and queried with
their questions. `--made-up` adds rows around a few centers, where neighbors hardly differ: the
worst case for an index. Searches have a recall's depth, without a filter and with one that passes 1
%.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from embedder import add_embedder, identity
from numpy.typing import NDArray
from postgres_likeness import RARE, copied, search, vectors_of
from postgres_scale import fill

sys.path.insert(0, str(Path(__file__).parents[1]))

from speed import manifest
from trivet.lab.datasets.catalog import import_original
from trivet.lab.measure.bench import open_bench
from trivet.search.recipe import DEFAULT
from trivet.store.postgres import PostgresStore, Server
from trivet.store.postgres import vectors as postgres_vectors
from trivet.store.records import Model
from trivet.types import Filter

EF_SEARCH = (10, 20, 40, 80, 120, 200, 400, 800)
SHOWN = 10
FILTERS = {"everything": Filter(), "1 %": Filter(tags=("rare",))}
MADE_UP = "made-up"
# As a share of a vector's length: a cosine of about .7 remains.
MOVED = 1.0

Figures = dict[str, Any]
Questions = Sequence[NDArray[np.float32]]


def curve(store: PostgresStore, model: Model, questions: Questions, depth: int) -> list[Figures]:
    rows: list[Figures] = []
    for name, filter in FILTERS.items():
        search(store, "exact")
        exact, exact_ms = asked(store, model, questions, filter, depth)
        search(store, "index")
        for ef in EF_SEARCH:
            postgres_vectors._SETTINGS["hnsw.ef_search"] = str(ef)
            found, took = asked(store, model, questions, filter, depth)
            rows.append({
                "filter": name,
                "ef_search": ef,
                f"recall@{SHOWN}": round(recall([one[:SHOWN] for one in exact], found), 4),
                f"recall@{depth}": round(recall(exact, found), 4),
                "worst question": round(min(recall([one], [two]) for one, two in zip(exact, found, strict=True)), 4),
                "median ms": round(took, 2),
                "exact ms": round(exact_ms, 2),
            })  # fmt: skip
            print(json.dumps(rows[-1]), flush=True)
    return rows


def asked(
    store: PostgresStore, model: Model, questions: Questions, filter: Filter, depth: int
) -> tuple[list[list[str]], float]:
    """Return what each question found, and the median time in milliseconds."""
    answers, times = [], []
    for question in questions:
        start = time.perf_counter()
        answers.append([one.id for one in store.vectors.search(model, question, filter, depth)])
        times.append((time.perf_counter() - start) * 1000)
    return answers, statistics.median(times)


def recall(exact: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> float:
    shared = sum(len(set(one) & set(two)) for one, two in zip(exact, found, strict=True))
    return shared / max(1, sum(map(len, exact)))


def measured(server: Server, tenant: str, questions: Questions, depth: int) -> Figures:
    store = PostgresStore(server, tenant)
    (model,) = store.vectors.models()
    with store._database.write() as transaction:
        transaction.execute(RARE)
    start = time.perf_counter()
    store.vectors.build_index(model)
    built = time.perf_counter() - start
    # Open again: the filter's tags were added without the store's knowledge.
    store = PostgresStore(server, tenant)
    figures: Figures = {
        "memories": store.memories.visible_count(Filter()),
        "questions": len(questions),
    }
    return {
        **figures,
        "built in s": round(built, 1),
        "curve": curve(store, model, questions, depth),
    }


def beside_stored(server: Server, tenant: str, count: int) -> Questions:
    """Return queries near stored memories, as far away as a question is from its answer."""
    store, generator = PostgresStore(server, tenant), np.random.default_rng(7)
    (model,) = store.vectors.models()
    keys = generator.choice(store.memories.visible_count(Filter()), count, replace=False) + 1
    (rows,) = store.vectors._read(model, keys.tolist())
    stored = rows.vectors.reshape(count, -1).astype(np.float32)
    moved = stored + MOVED / np.sqrt(stored.shape[1]) * generator.standard_normal(
        stored.shape, np.float32
    )
    return list(moved / np.linalg.norm(moved, axis=1, keepdims=True))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", required=True)
    parser.add_argument("--administrator", help="role that may copy synthetic rows in")
    parser.add_argument(
        "--made-up", type=int, default=0, help="how many made-up memories; none if not given"
    )
    parser.add_argument("--queries", type=int, default=200, help="of each set")
    parser.add_argument(
        "--cache", type=Path, help="where the stores are kept; the lab's cache if none"
    )
    parser.add_argument(
        "--note", default="", help="what a reader must know of this server, for the manifest"
    )
    parser.add_argument("--output", type=Path, default=Path("docs/results/hnsw.json"))
    parser.add_argument("sets", nargs="*")
    add_embedder(parser)
    given = parser.parse_args()
    server = Server(given.url)
    with psycopg.connect(given.url) as connection:
        row = connection.execute(
            "SELECT version(), extversion FROM pg_extension WHERE extname = 'vector'"
        ).fetchone()
    assert row is not None
    about = {"postgresql": row[0].partition(" on ")[0], "pgvector": row[1], "note": given.note}
    shape = {"ef_construction": postgres_vectors.EF_CONSTRUCTION, "depth": DEFAULT.depth}
    sets: Figures = {}
    for name in given.sets:
        with open_bench(import_original(name), given.cache, given.embedder) as bench:
            copied(bench, server, name)
            sets[name] = measured(server, name, vectors_of(bench, given.queries), DEFAULT.depth)
    if given.made_up:
        PostgresStore(server, "default")  # Creates the schema.
        fill(given.administrator, {MADE_UP: given.made_up}, given.embedder)
        sets[MADE_UP] = measured(
            server, MADE_UP, beside_stored(server, MADE_UP, given.queries), DEFAULT.depth
        )
    server.close()
    command = f"studies/hnsw.py --queries {given.queries} --made-up {given.made_up} {' '.join(given.sets)}".strip()
    told = manifest(command, embedder=identity(given.embedder), **about, **shape)
    given.output.write_text(
        json.dumps({"manifest": told, "sets": sets}, indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
