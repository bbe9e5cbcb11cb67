r"""Measure a new process's first recall from a PostgreSQL tenant, with and without index files.

python benchmarks/studies/postgres_opening.py --store /tmp/trivet-speed/10000.db \
    --work /tmp/trivet-opening --output docs/results/postgres-opening.json

speed.py makes the store, which is copied into PostgreSQL. Processes with and without the files take
turns, so that noise affects both alike. Each first recalls twice from an empty tenant: once to load
modules, once as the baseline; rerankers are off. Then two processes of each kind hold the tenant,
and their memory is read. Last, both kinds answer the same questions, and all scores are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
from psycopg.conninfo import conninfo_to_dict

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from speed import manifest
from support.postgres_server import PostgresServer
from texts import queries
from trivet import Trivet
from trivet.store.postgres import PostgresStore
from trivet.store.postgres.index_files import VARIABLE
from trivet.store.postgres.maintenance import import_sqlite

ROUNDS = 9
ASKED = 200
# Recalls of a process whose memory is read.
STAYING = 20
WAYS = ("without", "with")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    folders = {way: given.work / way for way in WAYS}
    for folder in folders.values():
        shutil.rmtree(folder, ignore_errors=True)
    file = given.work / "copy.db"
    shutil.copyfile(given.store, file)
    with Trivet.open(file, background=False) as trivet:  # Migrates it.
        trivet.drain()
    server = PostgresServer()
    try:
        url = _filled(server, file)
        result: dict[str, Any] = {
            "manifest": manifest(f"postgres_opening.py {' '.join(sys.argv[1:])}", rounds=ROUNDS)
        }
        result["written"] = _written(url, folders["with"])
        result["first recall"] = _first_recalls(url, folders)
        result["PSS of two processes in MB"] = {
            way: _memory(url, folder) for way, folder in folders.items()
        }
        answers = {
            way: _asked(url, folder, "answers")["answers"] for way, folder in folders.items()
        }
        result["same answers"] = answers["with"] == answers["without"]
        given.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(json.dumps(result, indent=1))
    finally:
        server.remove()


def _filled(server: PostgresServer, file: Path) -> str:
    url = server.database()
    store = PostgresStore(url)
    import_sqlite(file, store._database)
    store.close()
    with server.administrator(url.split("@/")[1].split("?")[0]) as connection:
        connection.execute("VACUUM ANALYZE")
    return url


def _written(url: str, folder: Path) -> dict[str, float]:
    os.environ[VARIABLE] = str(folder)
    store = PostgresStore(url)
    started, used = time.perf_counter(), time.process_time()
    assert store.upkeep.renew_index()
    took, used = time.perf_counter() - started, time.process_time() - used
    size = sum(file.stat().st_size for file in store._database.index_files.folder.iterdir())
    store.close()
    return {"seconds": round(took, 2), "of processor": round(used, 2), "MB": round(size / 1e6, 1)}


def _first_recalls(url: str, folders: dict[str, Path]) -> dict[str, dict[str, float]]:
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way, folder in folders.items():
            found[way].append(_asked(url, folder, "first"))
    names = list(found["with"][0])
    return {
        way: {name: round(statistics.median(one[name] for one in all_), 1) for name in names}
        for way, all_ in found.items()
    }


def _server_time(url: str) -> float:
    """Return the server's time in ms, including processes that ended."""
    folder = Path(str(conninfo_to_dict(url)["host"]))
    first = psutil.Process(int((folder / "data" / "postmaster.pid").read_text().split()[0]))
    while True:
        try:
            times = [one.cpu_times() for one in (first, *first.children())]
        except psutil.NoSuchProcess:  # It has just ended, and its parent counts it.
            continue
        total: float = sum(
            one.user + one.system + one.children_user + one.children_system for one in times
        )
        return 1000 * total


def _memory(url: str, folder: Path) -> float:
    processes = [_begun(url, folder, "stay") for _ in range(2)]
    try:
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        held: float = sum(psutil.Process(one.pid).memory_full_info().pss for one in processes)
        return round(held / 1e6, 1)
    finally:
        for process in processes:
            process.communicate("\n")


def _asked(url: str, folder: Path, what: str) -> dict[str, Any]:
    told, _ = _begun(url, folder, what).communicate("\n")
    answer: dict[str, Any] = json.loads(told)
    return answer


def _begun(url: str, folder: Path, what: str) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--in-new-process", what, url]
    environment = {**os.environ, VARIABLE: str(folder)}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )


def in_new_process(what: str, url: str) -> None:
    asked = queries(ASKED)
    empty = "empty tenant, processor, ms"
    figures: dict[str, Any] = {}
    for _ in range(2):  # The first time loads modules.
        before, used = _server_time(url), time.process_time()
        with Trivet.open(url, tenant="empty", background=False, rerank="off") as other:
            other.recall(asked[0])
        figures[empty] = (time.process_time() - used) * 1000
        figures[f"{empty}, server"] = _server_time(url) - before
    before, started, used = _server_time(url), time.perf_counter(), time.process_time()
    with Trivet.open(
        url, background=False, rerank="auto" if what == "answers" else "off"
    ) as trivet:
        trivet.recall(asked[0])
        figures["wall, ms"] = (time.perf_counter() - started) * 1000
        figures["processor, ms"] = (time.process_time() - used) * 1000
        figures["processor of the server, ms"] = _server_time(url) - before
        if what != "first":
            answers = [
                [(hit.memory.id, hit.score) for hit in trivet.recall(one).hits]
                for one in asked[:STAYING]
            ]
        if what == "answers":
            answers = [
                [(hit.memory.id, hit.score) for hit in trivet.recall(one).hits] for one in asked
            ]
            figures["answers"] = answers
        print(json.dumps(figures), flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--in-new-process"]:
        in_new_process(*sys.argv[2:])
    else:
        main()
