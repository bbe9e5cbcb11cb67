"""Do both stores answer alike? The lab's stores, copied into PostgreSQL with their vectors, asked the same questions.

    TRIVET_DATA=/path/to/originals python benchmarks/postgres_likeness.py --url postgresql://... scifact locomo

The lab's stores must be embedded already (XDG_CACHE_HOME says where, as for the lab). Prints, for each set and
recipe, the mean overlap of the first ten, nDCG@10 of both and the median time of the legs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import msgspec

from trivet.embedding import Embedding
from trivet.lab.bench import Bench, open_bench
from trivet.lab.measures import measure
from trivet.lab.originals import import_original
from trivet.recipe import DEFAULT
from trivet.store.postgres import PostgresStore, Server
from trivet.store.postgres.taking_in import take_in
from trivet.trivet import Trivet

ARMS = {"default": str(DEFAULT)}
MEASURE = "nDCG@10"


def beside(bench: Bench, server: Server, tenant: str, indexed: bool) -> Bench:
    """The same store in PostgreSQL."""
    engine = bench.trivet.engine
    store = PostgresStore(server, tenant)
    if not store.memories.stats().memories:
        take_in(Path(engine.settings.path), store._database)
        with server.connection() as connection:
            connection.execute("ANALYZE")
    if indexed:
        (model,) = store.vectors.models()
        store.vectors.build_index(model)
        store.vectors.exact_up_to = store.vectors.named_up_to = 0
    embedding = Embedding(store, engine.settings.embedder, engine.embedding._configured)
    return Bench(bench.dataset, Trivet(msgspec.structs.replace(engine, store=store, embedding=embedding)))


def asked(bench: Bench, recipe: str, queries: int | None) -> tuple[dict[str, list[tuple[str, float]]], float]:
    run, times = {}, []
    for query in bench.dataset.queries[:queries]:
        start = time.perf_counter()
        run[query.id] = bench.ranked(query, recipe, 10)
        times.append(time.perf_counter() - start)
    return run, statistics.median(times) * 1000


def compared(bench: Bench, other: Bench, recipe: str, queries: int | None) -> dict[str, float]:
    ours, our_time = asked(bench, recipe, queries)
    theirs, their_time = asked(other, recipe, queries)
    overlap = [
        len({id for id, _ in ours[query]} & {id for id, _ in theirs[query]}) / max(1, len(ours[query]))
        for query in ours
    ]
    same = [[id for id, _ in ours[query]] == [id for id, _ in theirs[query]] for query in ours]
    return {
        "queries": len(ours),
        "overlap@10": round(statistics.mean(overlap), 4),
        "same order": round(statistics.mean(same), 4),
        "sqlite " + MEASURE: round(measure(bench.dataset, ours, [MEASURE]).overall[MEASURE], 4),
        "postgres " + MEASURE: round(measure(bench.dataset, theirs, [MEASURE]).overall[MEASURE], 4),
        "sqlite ms": round(our_time, 2),
        "postgres ms": round(their_time, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--queries", type=int)
    parser.add_argument("--indexed", action="store_true", help="by HNSW also where the set is small")
    parser.add_argument("sets", nargs="+")
    given = parser.parse_args()
    server = Server(given.url)
    for name in given.sets:
        bench = open_bench(import_original(name))
        other = beside(bench, server, name, given.indexed)
        for arm, recipe in ARMS.items():
            print(json.dumps({"set": name, "arm": arm, **compared(bench, other, recipe, given.queries)}), flush=True)
        bench.close()
    server.close()


if __name__ == "__main__":
    main()
