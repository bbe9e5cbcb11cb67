"""How much of an exact search the HNSW index finds, plain and under a filter that lets 1 % through.

    python benchmarks/postgres_index.py --url postgresql://... TENANT

The tenant is one that postgres_likeness.py filled; stored vectors, a little disturbed, are the questions.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import numpy as np
from numpy.typing import NDArray

from trivet.store.base import Model
from trivet.store.postgres import PostgresStore, Server
from trivet.types import Filter

DEPTH, NOISE = 10, 0.03
MARK = "INSERT INTO memory_tag (memory, tag) SELECT key, 'rare' FROM memory WHERE key %% 100 = 0 ON CONFLICT DO NOTHING"
SOME = (
    "SELECT vector::text FROM passage WHERE model = %(model)s ORDER BY memory * 7919 %% 10007, ordinal LIMIT %(most)s"
)
FILTERS = {"everything": Filter(), "1 %": Filter(tags=("rare",))}


def questions(store: PostgresStore, model: Model) -> list[NDArray[np.float32]]:
    rows = store._database.read().execute(SOME, {"model": model.model}).fetchall()
    stored = np.array([json.loads(row[0]) for row in rows], np.float32)
    moved = stored + NOISE * np.random.default_rng(5).normal(size=stored.shape).astype(np.float32)
    return list(moved / np.linalg.norm(moved, axis=1, keepdims=True))


def answers(
    store: PostgresStore, model: Model, asked: list[NDArray[np.float32]], filter: Filter
) -> tuple[list[set[str]], float]:
    found, times = [], []
    for question in asked:
        start = time.perf_counter()
        found.append({one.id for one in store.vectors.search(model, question, filter, DEPTH)})
        times.append(time.perf_counter() - start)
    return found, round(1000 * statistics.median(times), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("tenant")
    given = parser.parse_args()
    server = Server(given.url)
    store = PostgresStore(server, given.tenant)
    with store._database.write() as transaction:
        transaction.execute(MARK)
    model = store.vectors.models()[0]
    asked = questions(store, model)
    store.vectors.exact_up_to = 10**9
    exact = {name: answers(store, model, asked, filter) for name, filter in FILTERS.items()}
    start = time.perf_counter()
    store.vectors.build_index(model)
    print(json.dumps({"tenant": given.tenant, "index built in s": round(time.perf_counter() - start, 2)}))
    store.vectors.exact_up_to = store.vectors.named_up_to = 0
    for name, filter in FILTERS.items():
        found, took = answers(store, model, asked, filter)
        shared = sum(len(one & other) for one, other in zip(found, exact[name][0], strict=True))
        recall = shared / sum(len(one) for one in exact[name][0])
        print(
            json.dumps(
                {
                    "filter": name,
                    "recall@10": round(recall, 4),
                    "fewest": min(map(len, found)),
                    "index ms": took,
                    "exact ms": exact[name][1],
                }
            )
        )
    store.vectors._drop_indexes([model])
    server.close()


if __name__ == "__main__":
    main()
