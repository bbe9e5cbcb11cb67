r"""Measure PostgreSQL recall: 100,000 memories in one tenant, a million over 1,000 tenants.

python benchmarks/studies/postgres_scale.py --url postgresql://trivet@... \
    --administrator postgresql://postgres@... --work /tmp/trivet-scale \
    --output benchmarks/results/postgres_scale.json

The database must be empty except for pgvector. The administrator copies the rows in, past row-level
security; recalls use the plain role. The large tenant is also copied into an embedded store; both
take turns, so figures are ratios within one run.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psutil
import psycopg
from embedder import add_embedder, identity
from postgres_rows import DIMENSION, TABLES, Tenant, copy, vocabulary

sys.path.insert(0, str(Path(__file__).parents[1]))

from speed import manifest
from trivet import Trivet, load_settings
from trivet.analyse import ANALYSER_VERSION
from trivet.graph.concepts import EXTRACTION_VERSION
from trivet.memory.engine import Shared, open_engine
from trivet.settings import Settings

LARGE, SMALL = "large", "t{:04d}"
QUERIES = 200
VISITS = 1_000
MODEL = """INSERT INTO embedding_model (tenant, identity, spec, dimension, serving) VALUES (%s, %s, %s, %s, true)
           RETURNING model"""
TENANT = "INSERT INTO tenant (tenant, last_key, last_concept) VALUES (%s, %s, 200)"
META = "INSERT INTO meta (tenant, name, value) VALUES (%s, %s, %s)"

Figures = dict[str, Any]


def fill(administrator: str, sizes: dict[str, int], embedder: str) -> Figures:
    """Skip foreign key checks, which hold by construction."""
    words = vocabulary()
    took: Figures = {}
    with psycopg.connect(administrator) as connection:
        connection.execute("SET session_replication_role = replica")
        models = {}
        for name, size in sizes.items():
            connection.execute(TENANT, (name, size))
            row = connection.execute(
                MODEL, (name, identity(embedder), embedder, DIMENSION)
            ).fetchone()
            assert row is not None
            models[name] = row[0]
            for maker, version in (
                ("analyser", ANALYSER_VERSION),
                ("extraction", EXTRACTION_VERSION),
            ):
                connection.execute(META, (name, maker, str(version)))
        for table, (columns, rows) in TABLES.items():
            start = time.perf_counter()
            tenants = (
                Tenant(name, number, size, models[name], words)
                for number, (name, size) in enumerate(sizes.items())
            )
            copy(connection, table, columns, (rows(tenant) for tenant in tenants))
            took[f"{table} s"] = round(time.perf_counter() - start, 1)
            print(table, took[f"{table} s"], flush=True)
    with psycopg.connect(administrator, autocommit=True) as connection:
        start = time.perf_counter()
        connection.execute("VACUUM (ANALYZE)")
        took["vacuum s"] = round(time.perf_counter() - start, 1)
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        took["database MB"] = row[0] // 2**20 if row else 0
    return took


def questions(count: int) -> list[str]:
    """Return queries of a few words, of all frequencies except the highest."""
    words, chooser = [word.decode() for word in vocabulary().tolist()], random.Random(3)
    return [" ".join(chooser.choices(words[5:4_000], k=3)) for _ in range(count)]


def timed(trivet: Trivet, query: str) -> float:
    answer = trivet.recall(query)
    assert not answer.health.degraded, answer.health
    return answer.took_ms


def summary(times: Sequence[float]) -> Figures:
    return {
        "p50 ms": round(statistics.median(times), 2),
        "p95 ms": round(float(np.percentile(times, 95)), 2),
    }


def large(server: Trivet, embedded: Trivet) -> Figures:
    """Warm the words for both, but let neither find the other's cached work."""
    asked = questions(QUERIES)
    times: dict[str, list[float]] = {"postgres": [], "embedded": []}
    start = time.perf_counter()
    server.recall(asked[0])
    first = time.perf_counter() - start
    for query in asked:
        server.recall(query)
        embedded.recall(query)
    for query in asked:
        turned = " ".join(reversed(query.split()))
        times["postgres"].append(timed(server, turned))
        times["embedded"].append(timed(embedded, f"{turned} "))
    figures: Figures = {name: summary(values) for name, values in times.items()}
    ratio = statistics.median(times["postgres"]) / statistics.median(times["embedded"])
    return {**figures, "ratio p50": round(ratio, 2), "first recall s": round(first, 2)}


def many(settings: Settings, shared: Shared, count: int) -> tuple[Figures, list[float]]:
    """Query every tenant once, then in random order, cached or not."""
    chooser, asked = random.Random(5), questions(VISITS)
    opened, first = [], []
    for number in range(count):
        start = time.perf_counter()
        engine = open_engine(msgspec.structs.replace(settings, tenant=SMALL.format(number)), shared)
        opened.append(Trivet.of(engine))
        opened[-1].recall(asked[number % len(asked)])
        first.append((time.perf_counter() - start) * 1000)
    visits = [timed(chooser.choice(opened), query) for query in asked]
    again = []
    for query in asked[: VISITS // 4]:
        tenant = chooser.choice(opened)
        tenant.recall(query)
        again.append(timed(tenant, " ".join(reversed(query.split()))))
    resident = psutil.Process().memory_info().rss // 2**20
    for trivet in opened:
        trivet.close()
    return {
        "opened and asked first": summary(first),
        "asked in no order": summary(visits),
        "asked again": summary(again),
        "resident MB": resident,
    }, visits


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", required=True)
    parser.add_argument("--administrator", required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--tenants", type=int, default=1_000)
    parser.add_argument(
        "--small", type=int, default=1_000, help="memories of each of the many tenants"
    )
    parser.add_argument(
        "--filled", action="store_true", help="the rows of an earlier run are there"
    )
    add_embedder(parser)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    settings = load_settings(path=given.url, background=False, embedder=given.embedder)
    shared = Shared.of(settings)  # Creates the schema.
    sizes = {
        LARGE: given.large,
        **{SMALL.format(number): given.small for number in range(given.tenants)},
    }
    filled = {} if given.filled else fill(given.administrator, sizes, given.embedder)
    server = Trivet.of(open_engine(msgspec.structs.replace(settings, tenant=LARGE), shared))
    file = given.work / f"{LARGE}.db"
    file.unlink(missing_ok=True)
    server.backup(file)
    with Trivet.open(file, background=False, embedder=given.embedder) as embedded:
        in_one = large(server, embedded)
    print(json.dumps(in_one), flush=True)
    over_many, visits = many(settings, shared, given.tenants)
    print(json.dumps(over_many), flush=True)
    at_100k = in_one["postgres"]["p50 ms"]
    over_many["ratio p50 to the large tenant"] = round(statistics.median(visits) / at_100k, 2)
    over_many["ratio p95 to the large tenant"] = round(
        over_many["asked in no order"]["p95 ms"] / in_one["postgres"]["p95 ms"], 2
    )
    server.close()
    shared.close()
    memories = given.large + given.tenants * given.small
    result = {
        "manifest": manifest(
            "studies/postgres_scale.py", memories=memories, embedder=identity(given.embedder)
        ),
        "rows": filled,
        f"{given.large:,} in one tenant": in_one,
        f"{given.tenants * given.small:,} over {given.tenants:,} tenants": over_many,
    }
    if given.output:
        given.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
