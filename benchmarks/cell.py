"""Measure a tenant's size in a PostgreSQL cell by table, and its move while a client writes.

python benchmarks/cell.py --memories 20000 --out docs/results/cell.json

Memories are like notes of about 60 tokens. Vectors are random, which PostgreSQL stores and copies
like any. The rules read the graph.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))

from manifest import manifest
from support.postgres_server import PostgresServer
from texts import memories
from trivet import Trivet, TrivetError
from trivet.store.postgres import Server
from trivet.store.postgres.tenant_move import move

USUAL: dict[str, Any] = {
    "embedder": "none",
    "changes": "off",
    "background": False,
    "secrets_keyring": False,
}
DIMENSION = 384
AT_ONCE = 500
SIZES = """SELECT relname, pg_total_relation_size(c.oid) FROM pg_class AS c
           WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 2 DESC"""
PASSAGES = """INSERT INTO passage (memory, model, ordinal, start, stop, vector)
              SELECT memory, %s, 0, 0, 300, vector::halfvec
              FROM unnest(%s::bigint[], %s::text[]) AS one (memory, vector)"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=20_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    old, new = PostgresServer(), PostgresServer()
    try:
        figures = measured(old, new, given.memories)
    finally:
        old.remove()
        new.remove()
    result = {**manifest(), "memories": given.memories, **figures}
    print(json.dumps(result, indent=1))
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")


def measured(old: PostgresServer, new: PostgresServer, count: int) -> dict[str, Any]:
    source, target = old.database(), new.database()
    with Trivet.open(source, tenant="acme", **USUAL) as trivet:
        empty = sizes(old, source)
        fill(trivet, source, count)
        full = sizes(old, source)
        each = {name: round((size - empty[name]) / count) for name, size in full.items()}
        took = {name: size for name, size in each.items() if size > 0}
        return {
            "bytes_a_memory": sum(took.values()),
            "by_table": took,
            "move": moved(trivet, source, target),
        }


def fill(trivet: Trivet, url: str, count: int) -> None:
    """Fill the tenant with memories, vectors, and the graph the rules find."""
    some: list[dict[str, str]] = []
    for number, text in enumerate(memories(count), 1):
        some.append({"content": text})
        if len(some) == AT_ONCE or number == count:
            trivet.remember_many(some)
            some = []
    trivet.drain()
    model = trivet.engine.store.vectors.adopt("made up", "made up", DIMENSION)
    chance = np.random.default_rng(7)
    with psycopg.connect(url) as connection:
        connection.execute("SELECT set_config('trivet.tenant', 'acme', false)")
        for start in range(0, count, AT_ONCE):
            keys = list(range(start + 1, min(start + AT_ONCE, count) + 1))
            vectors = chance.normal(size=(len(keys), DIMENSION)) / DIMENSION**0.5
            connection.execute(
                PASSAGES,
                (model.model, keys, [str(one.tolist()) for one in vectors.astype(np.float16)]),
            )
        connection.execute("DELETE FROM job")


def sizes(server: PostgresServer, url: str) -> dict[str, int]:
    """Return sizes with indexes after a vacuum."""
    name = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
    with server.administrator(name) as connection:
        connection.execute("VACUUM (ANALYZE)")
        return {str(row[0]): int(str(row[1])) for row in connection.execute(SIZES)}


def moved(trivet: Trivet, source: str, target: str) -> dict[str, Any]:
    """Return the time of each stage while one writer goes on; its work is included."""
    stages: list[tuple[str, float, float]] = []
    ended = threading.Event()

    def write() -> None:
        for text in memories(100_000, seed=3):
            if ended.is_set():
                return
            with suppress(TrivetError):  # Refused while the tenant is frozen, and after the switch.
                trivet.remember(text)
            time.sleep(0.1)

    writer = threading.Thread(target=write)
    writer.start()
    old, new = Server(source), Server(target)

    def told(stage: str, detail: str = "") -> None:
        if not stages or stages[-1][0] != stage:
            stages.append((stage, time.monotonic(), processor_seconds(source, target)))

    move(old, new, "acme", told)
    told("ended")
    ended.set()
    writer.join()
    old.close()
    new.close()
    return {
        one[0]: {
            "seconds": round(after[1] - one[1], 2),
            "processor_seconds": round(after[2] - one[2], 2),
        }
        for one, after in pairwise(stages)
    }


def processor_seconds(*urls: str) -> float:
    """Return processor time of this process and its database backends, robust on a busy machine."""
    used = time.process_time()
    for url in urls:
        with psycopg.connect(url) as connection:
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE usename = 'trivet'"
            ).fetchall()
        for (pid,) in rows:
            with suppress(OSError):  # It has ended.
                fields = Path(f"/proc/{pid}/stat").read_text().split()
                used += (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    return used


if __name__ == "__main__":
    main()
