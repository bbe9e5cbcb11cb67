"""Measure sync on loopback, with the server and each laptop in a separate process.

python benchmarks/sync.py first --memories 100000             a first sync, killed once
python benchmarks/sync.py first --memories 100000 --vectors   the same with vectors
python benchmarks/sync.py latency --writes 200                from one laptop to another
python benchmarks/sync.py idle --laptops 10 --seconds 300     store statements of idle laptops
python benchmarks/sync.py many --laptops 100 --seconds 600    writing laptops, one server

`--out docs/results/sync-figures.json` adds the figures to the file, each with its manifest.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from manifest import manifest
from trivet import Trivet, TrivetError
from trivet.memory.admin.accounts import RIGHTS, make_key
from trivet.serve.resident.sync_worker import SyncWorker
from trivet.store.records import Passage
from trivet.sync import verbs
from trivet.types import Caller

USUAL: dict[str, Any] = {"background": False, "changes": "off", "secrets_keyring": False}
AT_ONCE = 500
SYLLABLES = "ka lo mi ne ru sa to vi bar den fil gon hem jor kal lum".split()
WORDS_OF_A_MEMORY = 40
# A hosted model in name only: all vectors exist. Same dimension as the bundled one.
MODEL, DIMENSION = "openai:words#dimensions=384", 384
# A hundred laptops wait at once, and each counts as a request in progress.
LIMITS = {"TRIVET_SERVER_REQUESTS_A_MINUTE": "1000000", "TRIVET_SERVER_BURST": "1000000"}
SERVE = """
import os, sys
sys.path.insert(0, sys.argv[3])
import benchmarks.sync as figures
figures.count_statements(sys.argv[1])
sys.argv = ["trivet", "--path", sys.argv[1], "serve", "--port", sys.argv[2]]
from trivet.cli import main
main()
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("first", "latency", "idle", "many"))
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--vectors", action="store_true", help="sync vectors too")
    parser.add_argument("--writes", type=int, default=200)
    parser.add_argument("--laptops", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument(
        "--a-minute", type=float, default=6, help="how often each of many laptops writes"
    )
    parser.add_argument(
        "--folder", type=Path, help="where a server's store is made once and found again"
    )
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        os.environ["TRIVET_CONFIG"] = f"{made}/settings/trivet.toml"
        name, figures = WHAT[given.what](Path(made), given)
    result = {**figures, **manifest()}
    print(json.dumps({name: result}, indent=1))
    if given.out:
        known = json.loads(given.out.read_text()) if given.out.exists() else {}
        given.out.write_text(json.dumps({**known, name: result}, indent=1) + "\n")


# ---- servers and laptops


class Server:
    """`trivet serve` in a separate process, whose store counts its statements."""

    def __init__(self, store: Path, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._counted = folder / "statements"
        environment = {**os.environ, **LIMITS, "TRIVET_EMBEDDER": "none", "TRIVET_CHANGES": "off",
                       "COUNTED_STATEMENTS": str(self._counted)}  # fmt: skip
        log = (folder / "server.log").open("ab")
        words = [
            sys.executable,
            "-c",
            SERVE,
            str(store),
            str(self.port),
            str(Path(__file__).parents[1]),
        ]
        self.process = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
        while not self._answers():
            if self.process.poll() is not None:
                raise SystemExit(f"The server ended: {(folder / 'server.log').read_text()[-2500:]}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        with socket.socket() as trial:
            return trial.connect_ex(("127.0.0.1", self.port)) == 0

    def statements(self) -> int:
        """Return the count so far, which is written twice a second."""
        time.sleep(1)
        return int(self._counted.read_text())

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def count_statements(path: str) -> None:
    """Count this process's statements on the store at `path`, and write the count down."""
    from trivet.store.sqlite import connections

    counts = [0]

    class Counting(connections.Connection):
        def execute(self, *arguments: Any) -> Any:
            counts[0] += 1
            return super().execute(*arguments)

    connections.Connection = Counting  # type: ignore[misc]

    def note() -> None:
        while True:
            Path(os.environ["COUNTED_STATEMENTS"]).write_text(str(counts[0]))
            time.sleep(0.5)

    threading.Thread(target=note, daemon=True).start()


@contextmanager
def serving(store: Path, folder: Path) -> Iterator[Server]:
    server = Server(store, folder)
    try:
        yield server
    finally:
        server.stop()


def keys_for(store: Path, users: list[str]) -> dict[str, str]:
    with Trivet.open(store, embedder="none", **USUAL) as opened:
        for user in users:
            opened.engine.store.accounts.add_user(user, "writer")
        return {user: make_key(opened.engine.store, "default", user).text for user in users}


def joined(path: Path, server: Server, key: str, **more: Any) -> Trivet:
    settings = {"embedder": "none", **USUAL, **more}
    with Trivet.open(path, key=key, **settings) as before:
        verbs.join(before.engine, server.address)
    return Trivet.open(path, **settings)


def largest_mb(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    told = status.partition("VmHWM:")[2].split()  # Empty for a process that has just ended.
    return int(told[0]) // 1024 if told else 0


def processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---- a first sync


def first_sync(folder: Path, given: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Sync with one kill on the way. The clock stops while nothing runs."""
    kept = given.folder or folder
    kept.mkdir(parents=True, exist_ok=True)
    store = kept / f"server-{given.memories}.db"
    if not store.exists():
        fill(store, given.memories)
    key = keys_for(store, ["bo"])["bo"] if given.folder is None else renewed_key(store)
    embedder = MODEL.replace("#", "@http://127.0.0.1:9/v1#") if given.vectors else "none"
    with serving(store, folder) as server:
        path = folder / "laptop.db"
        joined(path, server, key, embedder=embedder).close()
        runs = [run_laptop(path, embedder, wait_s) for wait_s in (5.0, None)]
        worked = processor_seconds(server.process.pid)
        memory = largest_mb(server.process.pid)
        with Trivet.open(path, embedder=embedder, **USUAL) as laptop:
            level, waiting = verbs.verify(laptop.engine).level, laptop.stats().not_embedded
    figures = {
        "memories": given.memories,
        "seconds": round(sum(run["seconds"] for run in runs), 1),
        "killed_after_s": round(runs[0]["seconds"], 1),
        "level": level,
        "memory_of_laptop_mb": max(run["memory_mb"] for run in runs),
        "memory_of_server_mb": memory,
        "processor_s_of_server": round(worked, 1),
        "processor_s_of_laptop": round(sum(run["processor_s"] for run in runs), 1),
        "load_of_the_machine": round(os.getloadavg()[0], 1),
        "to_embed_on_laptop": waiting,
        "laptop_mb": round(sum(file.stat().st_size for file in folder.glob("laptop.db*")) / 2**20),
    }
    return ("first_sync_with_vectors" if given.vectors else "first_sync"), figures


def run_laptop(path: Path, embedder: str, kill_after: float | None) -> dict[str, Any]:
    code = (
        "import sys; from trivet import Trivet; from trivet.sync import verbs\n"
        "with Trivet.open(sys.argv[1], embedder=sys.argv[2], background=False, changes='off', "
        "secrets_keyring=False) as"
        " one:\n    print(verbs.synced_now(one.engine))"
    )
    began, worked = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen([sys.executable, "-c", code, str(path), embedder])
    most = 0
    while process.poll() is None:
        most = max(
            most, largest_mb(process.pid) if Path(f"/proc/{process.pid}/status").exists() else 0
        )
        if kill_after is not None and time.perf_counter() - began > kill_after:
            process.send_signal(signal.SIGKILL)
            process.wait()
        time.sleep(0.05)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - worked.ru_utime - worked.ru_stime
    return {"seconds": time.perf_counter() - began, "memory_mb": most, "processor_s": spent}


def renewed_key(store: Path) -> str:
    with Trivet.open(store, embedder="none", **USUAL) as opened:
        return make_key(opened.engine.store, "default", "bo").text


def fill(store: Path, count: int) -> None:
    """Make a server with one user's memories and random vectors: only their size matters."""
    chance = random.Random(1)
    caller = Caller(
        tenant="default", user="bo", role="writer", key="k", rights=frozenset(RIGHTS["writer"])
    )
    with Trivet.open(store, embedder="none", **USUAL) as opened:
        opened.engine.store.accounts.add_user("bo", "writer")
        memory = opened.acting_as(caller)
        for start in range(0, count, AT_ONCE):
            memory.remember_many(
                [{"content": text(chance, start + place)} for place in range(AT_ONCE)]
            )
        model = opened.engine.store.vectors.adopt(MODEL, MODEL, DIMENSION)
        numbers = np.random.default_rng(1)
        while jobs := opened.engine.store.jobs.lease(model, AT_ONCE, 600):
            vectors = numbers.normal(size=(len(jobs), 1, DIMENSION)).astype(np.float32)
            vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
            done = [
                (job, [Passage(0, 0, len(job.content))], vector)
                for job, vector in zip(jobs, vectors, strict=True)
            ]
            opened.engine.store.jobs.finish(done)


def text(chance: random.Random, number: int) -> str:
    words = (chance.choice(SYLLABLES) + chance.choice(SYLLABLES) for _ in range(WORDS_OF_A_MEMORY))
    return f"{' '.join(words)} number{number}."


# ---- from laptop to laptop


class Watched:
    """A following laptop that reports when it holds the awaited number of memories."""

    def __init__(self, memory: Trivet) -> None:
        self.memory = memory
        self.arrived = threading.Event()
        self.wanted = 10**9
        self.following = SyncWorker(partial(self._using))
        self.following.start()

    @contextmanager
    def _using(self) -> Iterator[Trivet]:
        yield self.memory
        if self.wanted < 10**9 and self.memory.list(limit=1).total >= self.wanted:
            self.arrived.set()

    def wait_for(self, count: int) -> None:
        self.arrived.clear()
        self.wanted = count


def latency(folder: Path, given: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Time from the return of `remember` on one laptop until the other finds it."""
    key = keys_for(folder / "server.db", ["ana"])["ana"]
    with serving(folder / "server.db", folder) as server:
        one, other = (
            Watched(joined(folder / f"{name}.db", server, key)) for name in ("one", "other")
        )
        took = []
        for number in range(given.writes):
            other.wait_for(number + 1)
            one.memory.remember(f"write {number} travels")
            began = time.perf_counter()
            if not other.arrived.wait(60):
                raise SystemExit("a write did not arrive within a minute")
            took.append(time.perf_counter() - began)
            time.sleep(random.uniform(0, 0.3))
        for laptop in (one, other):
            laptop.following.stop()
    return "write_to_other_laptop", spread(took)


def spread(took: list[float]) -> dict[str, Any]:
    took = sorted(took)
    return {
        "writes": len(took),
        "median_s": round(statistics.median(took), 3),
        "p95_s": round(took[int(0.95 * len(took))], 3),
        "p99_s": round(took[int(0.99 * len(took))], 3),
        "most_s": round(took[-1], 3),
    }


def idle(folder: Path, given: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Count for level, waiting laptops, each of a separate user."""
    users = [f"user{number}" for number in range(given.laptops)]
    keys = keys_for(folder / "server.db", users)
    with serving(folder / "server.db", folder) as server:
        laptops = [Watched(joined(folder / f"{user}.db", server, keys[user])) for user in users]
        laptops[0].memory.remember("Everybody has been here.")
        time.sleep(10)
        before, began = server.statements(), time.perf_counter()
        worked = processor_seconds(server.process.pid)
        time.sleep(given.seconds)
        asked, minutes = server.statements() - before, (time.perf_counter() - began) / 60
        worked = processor_seconds(server.process.pid) - worked
        for laptop in laptops:
            laptop.following.stop()
            laptop.memory.close()
        alone_seconds = given.seconds / 2
        before = server.statements()
        time.sleep(alone_seconds)
        alone = (server.statements() - before) / (alone_seconds / 60)
    return f"idle_{given.laptops}", {
        "laptops": given.laptops,
        "minutes": round(minutes, 1),
        "statements": asked,
        "statements_a_minute_of_the_server_alone": round(alone, 1),
        "statements_a_laptop_and_minute": round((asked / minutes - alone) / given.laptops, 2),
        "processor_ms_a_laptop_and_minute": round(1000 * worked / minutes / given.laptops, 2),
    }


# ---- many laptops


def many(folder: Path, given: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Run two laptops per user: one writes, one times arrivals. All must be level at the end."""
    users = [f"user{number}" for number in range(given.laptops // 2)]
    keys = keys_for(folder / "server.db", users)
    with serving(folder / "server.db", folder) as server:
        pairs = [
            tuple(
                Watched(joined(folder / f"{user}{name}.db", server, keys[user]))
                for name in ("a", "b")
            )
            for user in users
        ]
        took: list[float] = []
        late: list[str] = []
        until = time.perf_counter() + given.seconds
        worked = processor_seconds(server.process.pid)
        writers = [
            threading.Thread(
                target=_write_until, args=(until, number, *pair, 60 / given.a_minute, took, late)
            )
            for number, pair in enumerate(pairs)
        ]
        for thread in writers:
            thread.start()
        for thread in writers:
            thread.join()
        worked = processor_seconds(server.process.pid) - worked
        memory = largest_mb(server.process.pid)
        for pair in pairs:
            for laptop in pair:
                laptop.following.stop()
        time.sleep(2)
        level = [_is_level(laptop.memory) for pair in pairs for laptop in pair]
    return f"{given.laptops}_laptops", {
        "laptops": given.laptops,
        "seconds": given.seconds,
        **spread(took),
        "late": late,
        "level": sum(level),
        "server_busy": round(worked / given.seconds, 2),
        "memory_of_server_mb": memory,
    }


def _write_until(
    until: float,
    number: int,
    one: Watched,
    other: Watched,
    pause: float,
    took: list[float],
    late: list[str],
) -> None:
    chance, count = random.Random(number), 0
    time.sleep(chance.uniform(0, pause))
    while time.perf_counter() < until:
        count += 1
        other.wait_for(count)
        one.memory.remember(f"write {count} of laptop {number} travels")
        began = time.perf_counter()
        if not other.arrived.wait(60):
            late.append(f"write {count} of laptop {number}")
        took.append(time.perf_counter() - began)
        time.sleep(chance.uniform(0.5, 1.5) * pause)


def _is_level(laptop: Trivet) -> bool:
    try:
        verbs.sync_now(laptop.engine)
        return verbs.verify(laptop.engine).level
    except TrivetError as error:
        print(error)
        return False


WHAT = {"first": first_sync, "latency": latency, "idle": idle, "many": many}


if __name__ == "__main__":
    main()
