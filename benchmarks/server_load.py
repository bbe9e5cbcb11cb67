r"""Measure the server's overhead over the embedded store, and its throughput.

python benchmarks/server_load.py --store /tmp/trivet-speed/100000.db \
    --tenant-store /tmp/trivet-speed/1000.db --work /tmp/trivet-load \
    --output benchmarks/results/server.json [--postgres]

speed.py makes the stores. `one client`: recalls over HTTP and in this process take turns, so that
noise affects both alike. `load`: 32 clients from another process send nine recalls per store of one
memory, over ten tenants; compare with the queries per second the bare model embeds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import psutil

from server_clients import Client, load_from_another_process
from speed import manifest
from texts import queries
from trivet import Trivet
from trivet.memory.admin.accounts import make_key
from trivet.models.embed import load

Figures = dict[str, Any]
QUERIES = 200
TENANTS = tuple(f"tenant{number}" for number in range(10))
CLIENTS = 32
SECONDS = 60.0
BATCH = 32
# A new connection goes to any worker process: this many warm-ups per tenant reach them all.
WARM = 8
# The load makes the tenants' stores grow; rate limits must not be what is measured.
LIMITS = {"TRIVET_SERVER_REQUESTS_A_MINUTE": "1000000", "TRIVET_SERVER_BURST": "1000000"}


def main() -> None:
    given = _options()
    given.work.mkdir(parents=True, exist_ok=True)
    result: Figures = {
        "manifest": manifest(
            f"server_load.py {' '.join(sys.argv[1:])}",
            queries=QUERIES,
            clients=CLIENTS,
            seconds=given.seconds,
            tenants=len(TENANTS),
        )
    }
    with _stores(given) as stores:
        for name, (path, tenants) in stores.items():
            result[name] = {}
            if path is not None:
                result[name]["one client"] = _one_client(path, given.store)
                print(name, "one client", result[name]["one client"], flush=True)
            for workers in given.workers:
                kind = "load" if workers == 1 else f"load, {workers} workers"
                result[name][kind] = _load(tenants, given.seconds, workers)
                print(name, kind, result[name][kind], flush=True)
    given.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _one_client(path: str, embedded: Path) -> Figures:
    """`embedded` is the same store as an SQLite file in this process."""
    times: dict[str, list[float]] = {"embedded, SQLite": [], "embedded, same store": [], "http": []}
    with (
        Trivet.open(path, background=False) as same,
        Trivet.open(embedded, background=False) as file,
        _served(path, {}) as (address, _),
    ):
        client = Client(address, _key(same))
        asked = {
            "embedded, SQLite": file.recall,
            "embedded, same store": same.recall,
            "http": client.recall,
        }
        for name, recall in asked.items():
            for query in queries(
                QUERIES
            ):  # Posting lists are read on a word's first use and then cached.
                recall(query)
            print("  warm:", name, flush=True)
        for number, query in enumerate(queries(QUERIES)):
            for name, recall in asked.items():
                times[name].append(_milliseconds(lambda: recall(f"{query} {number} {name}")))  # noqa: B023
    figures: Figures = {name: _spread(found) for name, found in times.items()}
    for name in ("embedded, SQLite", "embedded, same store"):
        figures[f"http / {name}"] = round(figures["http"]["p50"] / figures[name]["p50"], 2)
    return figures


def _load(tenants: str, seconds: float, workers: int) -> Figures:
    """Measure bare embedding before and after, since other work on the machine varies."""
    keys = []
    for tenant in TENANTS:
        with Trivet.open(tenants, tenant=tenant, background=False) as trivet:
            keys.append(_key(trivet))
    before = _bare_embedding()
    memory: list[int] = []
    with _served(tenants, {}, workers) as (address, server), _sampled(server, memory):
        for key in keys * (WARM if workers > 1 else 1):  # Every tenant is open with loaded indexes.
            Client(address, key).recall("what is there")
        done = load_from_another_process(address, keys, CLIENTS, seconds)
    after = _bare_embedding()
    bare = {name: round(statistics.mean((before[name], after[name])), 1) for name in before}
    rate = done["requests"] / seconds
    return {
        **done,
        "requests a second": round(rate, 1),
        "embeddings a second, bare": bare,
        "share of the embedding alone": round(done["recalls"] / seconds / max(bare.values()), 3),
        "server memory in MB": {
            "at the start": memory[0],
            "at half": memory[len(memory) // 2],
            "at the end": memory[-1],
        },
    }


def _bare_embedding() -> dict[str, float]:
    embedder = load("bundled")
    assert embedder is not None
    asked = queries(2000)
    figures = {"two threads": 0.0, "batches of 32": 0.0}
    started = time.perf_counter()
    threads = [
        threading.Thread(target=lambda part=part: [embedder.embed_query(one) for one in part])
        for part in (asked[:500], asked[500:1000])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    figures["two threads"] = 1000 / (time.perf_counter() - started)
    started = time.perf_counter()
    for at in range(0, 1600, BATCH):
        embedder.embed_queries(asked[at : at + BATCH])
    figures["batches of 32"] = 1600 / (time.perf_counter() - started)
    return figures


@contextmanager
def _stores(given: argparse.Namespace) -> Iterator[Mapping[str, tuple[str | None, str]]]:
    large = _copy(given.store, given.work / "large.db")
    tenants = _copy(given.tenant_store, given.work / "tenants.db")
    for tenant in TENANTS:
        _copy(given.tenant_store, given.work / "tenants.tenants" / f"{tenant}.db")
    stores: dict[str, tuple[str | None, str]] = {"SQLite": (str(large), str(tenants))}
    if not given.postgres:
        yield stores
        return
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from support.postgres_server import PostgresServer
    from trivet.store.postgres import PostgresStore
    from trivet.store.postgres.maintenance import import_sqlite

    server = PostgresServer()
    try:
        url = server.database()
        for tenant, file in {"default": large, **dict.fromkeys(TENANTS, tenants)}.items():
            store = PostgresStore(url, tenant)
            import_sqlite(file, store._database)
            store.close()
            print("moved", tenant, flush=True)
        with server.administrator(url.split("@/")[1].split("?")[0]) as connection:
            connection.execute("ANALYZE")
        stores["PostgreSQL"] = (url, url)
        yield stores
    finally:
        server.remove()


def _copy(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    for rest in ("", "-wal", "-shm"):
        target.with_name(target.name + rest).unlink(missing_ok=True)
    shutil.copyfile(source, target)
    with Trivet.open(target, background=False) as trivet:  # Migrates it.
        trivet.drain()
    return target


def _key(trivet: Trivet) -> str:
    """Make a key for the store's owner, so both sides see the same memories."""
    store = trivet.engine.store
    if not store.accounts.has("local"):
        store.accounts.add_user("local", "admin")
    return make_key(store, trivet.settings.tenant, "local").text


@contextmanager
def _served(
    path: str, more: Mapping[str, str], workers: int = 1
) -> Iterator[tuple[str, psutil.Process]]:
    command = [
        sys.executable,
        "-m",
        "trivet.cli",
        "--path",
        path,
        "serve",
        "--port",
        "0",
        "--workers",
        str(workers),
    ]
    with Path(os.devnull).open("w") as nothing:
        process = Popen(
            command, stdout=PIPE, stderr=nothing, env={**os.environ, **LIMITS, **more}, text=True
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        yield line.split()[3].rstrip("."), psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def _sampled(server: psutil.Process, memory: list[int]) -> Iterator[None]:
    """Sample the server processes' memory twice a second; shared pages count once."""
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(0.5):
            processes = [server, *server.children(recursive=True)]
            memory.append(sum(one.memory_full_info().pss for one in processes) // 2**20)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _milliseconds(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return 1000 * (time.perf_counter() - started)


def _spread(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {
        "p50": round(statistics.median(ordered), 2),
        "p95": round(ordered[int(len(ordered) * 0.95)], 2),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--tenant-store", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[1, 2], help="by how many processes it is served"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
