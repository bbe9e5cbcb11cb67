r"""Compare both stores' answers: the lab's stores copied into PostgreSQL with their vectors.

TRIVET_DATA=/path/to/originals python benchmarks/studies/postgres_likeness.py \
    --url postgresql://... --output docs/results/postgres.json scifact locomo

The lab's stores must be embedded already (below XDG_CACHE_HOME). PostgreSQL searches three ways:
vectors in memory, exact search by the database, and its index. Then the index is compared with the
exact search: plain, with a filter that passes 1 %, and with a tenth of the memories sensitive.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from embedder import add_embedder, identity
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from speed import manifest
from trivet.lab.datasets.catalog import import_original
from trivet.lab.measure.bench import Bench, open_bench
from trivet.lab.measure.measures import measure
from trivet.search.embedding import Embedding
from trivet.search.recipe import DEFAULT
from trivet.store.postgres import PostgresStore, Server
from trivet.store.records import Model
from trivet.trivet import Trivet
from trivet.types import Filter

MEASURE = "nDCG@10"
DEPTH = 10
# More vectors than exist: disables a way.
ALWAYS = 10**12
# Limits: bytes of vectors in memory, memories searched exactly, memories named by key.
WAYS: Mapping[str, tuple[int, int, int]] = {
    "in memory": (ALWAYS, 0, 0),
    "exact": (0, ALWAYS, 0),
    "index": (0, 0, 0),
}
RARE = "INSERT INTO memory_tag (memory, tag) SELECT key, 'rare' FROM memory WHERE key %% 100 = 0 ON CONFLICT DO NOTHING"
HIDE = "UPDATE memory SET sensitive = true WHERE key %% 10 = 3"
DROP = "DELETE FROM passage WHERE memory IN (SELECT key FROM memory WHERE sensitive)"
FILTERS = {"everything": Filter(), "1 %": Filter(tags=("rare",))}

Figures = dict[str, Any]


def copied(bench: Bench, server: Server, tenant: str) -> PostgresStore:
    store = PostgresStore(server, tenant)
    if not store.memories.stats().memories:
        store.import_sqlite(Path(bench.trivet.settings.path))
        with server.connection() as connection:
            connection.execute("ANALYZE")
    return store


def search(store: PostgresStore, way: str) -> None:
    store.vectors.cached_up_to, store.vectors.exact_up_to, store.vectors.named_up_to = WAYS[way]


def beside(bench: Bench, store: PostgresStore) -> Bench:
    """Ask PostgreSQL the same questions."""
    engine = bench.trivet.engine
    embedding = Embedding(store, engine.settings.embedder, engine.embedding._configured)
    return Bench(
        bench.dataset, Trivet.of(msgspec.structs.replace(engine, store=store, embedding=embedding))
    )


def asked(bench: Bench, queries: int | None) -> tuple[dict[str, list[tuple[str, float]]], float]:
    run, times = {}, []
    for query in bench.dataset.queries[:queries]:
        start = time.perf_counter()
        with bench.trivet.engine.store.moment():
            run[query.id] = bench.ranked(query, str(DEFAULT), DEPTH)
        times.append(time.perf_counter() - start)
    return run, statistics.median(times) * 1000


def compared(
    bench: Bench, ours: Mapping[str, Any], our_time: float, other: Bench, queries: int | None
) -> Figures:
    theirs, their_time = asked(other, queries)
    found = [({id for id, _ in ours[query]}, {id for id, _ in theirs[query]}) for query in ours]
    same = [[id for id, _ in ours[query]] == [id for id, _ in theirs[query]] for query in ours]
    scores = [
        measure(bench.dataset, run, [MEASURE]).overall[MEASURE] for run in (dict(ours), theirs)
    ]
    return {
        "queries": len(ours),
        "overlap@10": round(
            statistics.mean(len(one & two) / max(1, len(one)) for one, two in found), 4
        ),
        "same order": round(statistics.mean(same), 4),
        f"sqlite {MEASURE}": round(scores[0], 4),
        f"postgres {MEASURE}": round(scores[1], 4),
        "time ratio": round(their_time / our_time, 2),
    }


def vectors_of(bench: Bench, most: int) -> list[NDArray[np.float32]]:
    embedding = bench.trivet.engine.embedding
    serving = embedding.serving()
    assert serving is not None
    return [embedding.query_vector(serving, query.text) for query in bench.dataset.queries[:most]]


def index_figures(
    store: PostgresStore, model: Model, questions: list[NDArray[np.float32]]
) -> Figures:
    """Return the share of the exact search's results that the index finds."""
    figures: Figures = {}
    for name, filter in FILTERS.items():
        answers: Figures = {}
        for way in ("exact", "index"):
            search(store, way)
            start = time.perf_counter()
            answers[way] = [
                {one.id for one in store.vectors.search(model, one, filter, DEPTH)}
                for one in questions
            ]
            answers[f"{way} s"] = time.perf_counter() - start
        shared = sum(
            len(one & two) for one, two in zip(answers["exact"], answers["index"], strict=True)
        )
        figures[name] = {
            "recall@10": round(shared / sum(map(len, answers["exact"])), 4),
            "fewest found": min(map(len, answers["index"])),
            "time ratio to exact": round(answers["index s"] / answers["exact s"], 2),
        }
    return figures


def index_beside(bench: Bench, server: Server, tenant: str, most: int) -> Figures:
    """Use a separate tenant, with one in a hundred tagged and later one in ten sensitive."""
    store, questions = copied(bench, server, tenant), vectors_of(bench, most)
    (model,) = store.vectors.models()
    with store._database.write() as transaction:
        transaction.execute(RARE)
    start = time.perf_counter()
    store.vectors.build_index(model)
    figures: Figures = {"built in s": round(time.perf_counter() - start, 1)}
    figures["plain"] = index_figures(PostgresStore(server, tenant), model, questions)
    with store._database.write() as transaction:
        transaction.execute(HIDE)
        transaction.execute(DROP)
    figures["a tenth sensitive"] = index_figures(PostgresStore(server, tenant), model, questions)
    return figures


def measured(bench: Bench, server: Server, tenant: str, queries: int | None) -> Figures:
    store = copied(bench, server, tenant)
    (model,) = store.vectors.models()
    store.vectors.build_index(model)
    ours, our_time = asked(bench, queries)
    figures: Figures = {"memories": store.memories.visible_count(Filter())}
    for way in WAYS:
        search(store, way)
        figures[way] = compared(bench, ours, our_time, beside(bench, store), queries)
        print(tenant, way, json.dumps(figures[way]), flush=True)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", required=True)
    parser.add_argument("--queries", type=int, help="of each set; all if none")
    parser.add_argument("--output", type=Path)
    parser.add_argument("sets", nargs="+")
    add_embedder(parser)
    given = parser.parse_args()
    server = Server(given.url)
    about = manifest("studies/postgres_likeness.py", embedder=identity(given.embedder))
    result: Figures = {"manifest": about, "sets": {}}
    for name in given.sets:
        with open_bench(import_original(name), embedder=given.embedder) as bench:
            figures = measured(bench, server, name, given.queries)
            figures["index against exact"] = index_beside(bench, server, f"{name}-index", 200)
            print(name, json.dumps(figures["index against exact"]), flush=True)
            result["sets"][name] = figures
    server.close()
    if given.output:
        given.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
