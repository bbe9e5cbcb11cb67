"""What sync costs, on loopback: how soon a write is on the other laptop, a first sync, what an idle laptop asks.

python benchmarks/sync.py --memories 100000 --writes 200 --out docs/results/sync-figures.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.http_server import Served, served, settings_for
from trivet import Trivet
from trivet.memory.accounts import RIGHTS
from trivet.serve.resident.syncing import Syncing
from trivet.sync import verbs
from trivet.types import Caller

USUAL: dict[str, Any] = {"embedder": "none", "background": False, "changes": "off", "secrets_keyring": False}
AT_ONCE = 500
SYLLABLES = "ka lo mi ne ru sa to vi bar den fil gon hem jor kal lum".split()
WORDS_OF_A_MEMORY = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--writes", type=int, default=200)
    parser.add_argument("--idle-seconds", type=float, default=60)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        folder = Path(made)
        os.environ["TRIVET_CONFIG"] = str(folder / "settings" / "trivet.toml")
        with served(settings_for(folder / "server.db", changes="off")) as server:
            figures = {
                "write_to_other_laptop": latency(folder, server, given.writes, given.idle_seconds),
                "first_sync": first_sync(folder, server, given.memories),
            }
    result = {**manifest(), **figures}
    print(json.dumps(result, indent=1))
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")


def joined(path: Path, server: Served, key: str) -> Trivet:
    with Trivet.open(path, key=key, **USUAL) as before:
        verbs.join(before.engine, server.address)
    return Trivet.open(path, **USUAL)


def latency(folder: Path, server: Served, writes: int, idle_seconds: float) -> dict[str, Any]:
    """From the return of `remember` on one laptop until the other finds it. Then requests of idle ones are counted."""
    key = server.key("ana", "writer")
    one, other = (joined(folder / f"{name}.db", server, key) for name in ("one", "other"))
    arrived = threading.Event()
    wanted = [0]

    @contextmanager
    def using(memory: Trivet) -> Any:
        yield memory
        if memory is other and memory.list(limit=1).total >= wanted[0]:
            arrived.set()

    threads = [Syncing(partial(using, memory)) for memory in (one, other)]
    for thread in threads:
        thread.start()
    took = []
    for number in range(writes):
        wanted[0] = number + 1
        arrived.clear()
        one.remember(f"write {number} travels")
        began = time.perf_counter()
        if not arrived.wait(60):
            raise SystemExit("a write did not arrive within a minute")
        took.append(time.perf_counter() - began)
    time.sleep(2)
    before = asked(server)
    time.sleep(idle_seconds)
    idle = asked(server) - before
    for thread in threads:
        thread.stop()
    took.sort()
    return {
        "writes": writes,
        "median_s": round(statistics.median(took), 3),
        "p95_s": round(took[int(0.95 * writes)], 3),
        "idle_requests_a_minute_for_two_laptops": round(idle * 60 / idle_seconds, 2),
    }


def asked(server: Served) -> int:
    metrics = server.client("root", "admin")("GET", "/metrics").text
    lines = [line for line in metrics.splitlines() if "_count" in line and "/v1/sync" in line]
    return int(sum(float(line.rpartition(" ")[2]) for line in lines))


def first_sync(folder: Path, server: Served, count: int) -> dict[str, Any]:
    chance = random.Random(1)
    key = server.key("bo", "writer")
    caller = Caller(tenant="default", user="bo", role="writer", key="k", rights=frozenset(RIGHTS["writer"]))
    memory = server.house._first().acting_as(caller)
    for start in range(0, count, AT_ONCE):
        memory.remember_many([{"content": text(chance, start + place)} for place in range(AT_ONCE)])
    laptop = joined(folder / "first.db", server, key)
    began, worked = time.perf_counter(), time.process_time()
    done = verbs.synced_now(laptop.engine)
    seconds, worked = time.perf_counter() - began, time.process_time() - worked
    level = verbs.verify(laptop.engine).level
    laptop.close()
    return {
        "memories": count,
        "received": done.received,
        "level": level,
        "seconds": round(seconds, 1),
        "processor_seconds_of_both_sides": round(worked, 1),
        "largest_memory_mb_of_both_sides": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def text(chance: random.Random, number: int) -> str:
    words = (chance.choice(SYLLABLES) + chance.choice(SYLLABLES) for _ in range(WORDS_OF_A_MEMORY))
    return f"{' '.join(words)} number{number}."


def manifest() -> dict[str, str]:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    return {
        "command": " ".join(["python", *sys.argv]),
        "commit": commit,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, shared",
    }


if __name__ == "__main__":
    main()
