"""The vector index answers like an exact search over many vectors, even with selective filters."""

from __future__ import annotations

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray

from support.stores import add, memory
from trivet.store.postgres import PostgresStore, Server
from trivet.store.records import Model, Passage
from trivet.types import Filter

COUNT, DIMENSION = 3_000, 32
RARE = Filter(tags=("rare",))


@pytest.fixture
def filled(vector_search: None, server: Server) -> tuple[PostgresStore, Model, NDArray[np.float32]]:
    """Clustered vectors.

    One memory in a hundred is tagged rare; one in seven is sensitive and has none.
    """
    store, generator = PostgresStore(server), np.random.default_rng(3)
    centres = generator.normal(size=(30, DIMENSION))
    vectors = centres[generator.integers(30, size=COUNT)] + 0.5 * generator.normal(
        size=(COUNT, DIMENSION)
    )
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    add(
        store,
        *(
            memory(
                f"{number}", tags=("rare",) if number % 100 == 0 else (), sensitive=number % 7 == 3
            )
            for number in range(COUNT)
        ),
    )
    store.vectors.cached_up_to = 0  # as for a tenant with too many vectors for the process's memory
    model = store.vectors.adopt("clustered", "a", DIMENSION)
    jobs = store.jobs.lease(model, COUNT, 60)
    store.jobs.finish([(job, (Passage(0, 0, 1),), unit[int(job.content)][None, :]) for job in jobs])
    return store, model, unit


def ids(
    store: PostgresStore, model: Model, query: NDArray[np.float32], filter: Filter
) -> list[str]:
    return [one.id for one in store.vectors.search(model, query, filter, 10)]


def test_index_answers_like_an_exact_search(
    filled: tuple[PostgresStore, Model, NDArray[np.float32]],
) -> None:
    store, model, unit = filled
    queries = unit[5:COUNT:150]
    exact = [
        (ids(store, model, query, Filter()), ids(store, model, query, RARE)) for query in queries
    ]
    store.vectors.build_index(model)
    store.vectors.exact_up_to = store.vectors.named_up_to = 0
    assert "passage_hnsw" in plan(store, model, unit[0], RARE)
    shared = [0, 0]
    for query, expected in zip(queries, exact, strict=True):
        for place, filter in enumerate((Filter(), RARE)):
            answer = ids(store, model, query, filter)
            assert len(answer) == 10, "a selective filter must not leave the answer short"
            shared[place] += len(set(answer) & set(expected[place]))
    assert min(shared) >= 0.99 * 10 * len(queries)


def plan(store: PostgresStore, model: Model, query: NDArray[np.float32], filter: Filter) -> str:
    """Return PostgreSQL's plan for the query."""
    seen: list[str] = []
    reader = store._database._reader
    plain = reader.execute_with

    def explaining(settings: object, sql: str, parameters: object) -> psycopg.Cursor[object]:
        rows = plain(settings, "EXPLAIN " + sql, parameters)  # type: ignore[arg-type]
        seen.extend(row[0] for row in rows)
        return plain(settings, sql, parameters)  # type: ignore[arg-type]

    reader.execute_with = explaining  # type: ignore[method-assign, assignment]
    try:
        store.vectors.search(model, query, filter, 10)
    finally:
        reader.execute_with = plain  # type: ignore[method-assign]
    return "\n".join(seen)


def test_large_model_gets_an_index_automatically(
    filled: tuple[PostgresStore, Model, NDArray[np.float32]], url: str
) -> None:
    store, model, unit = filled
    store.vectors.exact_up_to = 1_000
    first = ids(store, model, unit[7], Filter())
    store.vectors.wait()
    assert store.vectors.is_indexed(model)
    assert ids(store, model, unit[7], Filter()) == first
    assert all(finding.ok for finding in store.upkeep.findings())
    store.vectors.remove(model)
    with psycopg.connect(url) as connection:
        assert (
            connection.execute(
                "SELECT 1 FROM pg_indexes WHERE indexname LIKE 'passage_hnsw%'"
            ).fetchall()
            == []
        )
