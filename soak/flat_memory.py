"""Check that a server's memory stays flat, whatever clients ask.

Clients send words, scopes, recipes, ids and keys that never repeat. The process's memory is sampled
every half second and must not grow in the second half of the run. Below ten minutes the caches
would not fill, so a short run shrinks their bounds.

python -m soak.flat_memory 120
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

CLIENTS = 4
TENANTS = ("default", "acme", "birch")
# Edited again and again, so the store itself grows only on disk.
MEMORIES = 100
SAMPLE_SECONDS = 0.5
# From this duration on, caches have their shipped size; shorter runs get a fraction.
LONG_SECONDS = 600.0
SHORT_RUN_SHARE = 16
# What malloc may hold back, plus SQLite's own caches while the file grows.
ALLOWED_GROWTH = 0.05
ALLOWED_MB = 10.0

Figures = dict[str, Any]


def main(seconds: float) -> Figures:
    """Run and return the figures. Raise AssertionError if memory grew."""
    with tempfile.TemporaryDirectory(prefix="trivet-flat-") as folder:
        share = 1 if seconds >= LONG_SECONDS else SHORT_RUN_SHARE
        server = subprocess.Popen(
            [sys.executable, __file__, "--serve", folder, str(share)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "HOME": folder, "TRIVET_CONFIG": f"{folder}/trivet.toml"},
        )
        try:
            assert server.stdout is not None
            told = json.loads(server.stdout.readline())
            counts, samples = _under_load(server, told["port"], told["keys"], seconds)
        finally:
            server.terminate()
            server.wait(60)
    return _judged(counts, samples, seconds, share)


def _under_load(
    server: subprocess.Popen[str], port: int, keys: list[str], seconds: float
) -> tuple[Counter[str], list[float]]:
    end = time.monotonic() + seconds
    counts: Counter[str] = Counter()
    clients = [
        threading.Thread(target=_client, args=(number, port, keys, end, counts), daemon=True)
        for number in range(CLIENTS)
    ]
    for client in clients:
        client.start()
    samples: list[float] = []
    while time.monotonic() < end and server.poll() is None:
        samples.append(_memory_mb(server.pid))
        time.sleep(SAMPLE_SECONDS)
    for client in clients:
        client.join(60)
    return counts, samples


def _judged(counts: Counter[str], samples: list[float], seconds: float, share: int) -> Figures:
    quarter = max(1, len(samples) // 4)
    third, last = (
        statistics.median(samples[-2 * quarter : -quarter]),
        statistics.median(samples[-quarter:]),
    )
    figures: Figures = {
        "seconds": seconds,
        "requests": sum(count for name, count in counts.items() if name.isdigit()),
        "answers": dict(sorted(counts.items())),
        "caches_at_one_over": share,
        "mb": {
            "start": samples[0],
            "middle": round(third, 1),
            "end": round(last, 1),
            "most": max(samples),
        },
    }
    failed = [
        status for status in counts if status.startswith("5") and status not in ("503", "504")
    ]
    assert not failed, f"the server failed: {figures}"
    assert last <= third * (1 + ALLOWED_GROWTH) + ALLOWED_MB, f"the memory grew: {figures}"
    return figures


def _memory_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGESIZE") / 2**20, 1)


def _client(number: int, port: int, keys: list[str], end: float, counts: Counter[str]) -> None:
    chance = random.Random(number)
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    while time.monotonic() < end:
        method, path, body, headers = _made_up(chance, keys)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            answer.read()
            counts[str(answer.status)] += 1
        except (OSError, HTTPException) as error:
            counts[type(error).__name__] += 1
            connection.close()
    connection.close()


def _made_up(
    chance: random.Random, keys: list[str]
) -> tuple[str, str, bytes | None, dict[str, str]]:
    key = keys[0] if chance.random() < 0.8 else chance.choice(keys)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    kind = chance.choices(("recall", "write", "id", "stranger", "address"), (60, 20, 10, 5, 5))[0]
    if kind == "recall":
        return "POST", "/v1/recall", json.dumps(_recall(chance)).encode(), headers
    if kind == "write":
        headers["Idempotency-Key"] = uuid.UUID(int=chance.getrandbits(128)).hex
        id = str(uuid.uuid5(uuid.NAMESPACE_OID, str(chance.randrange(MEMORIES))))
        memory = {
            "id": id,
            "content": " ".join(_words(chance, 30)),
            "scope": "kept",
            "tags": _words(chance, 2),
        }
        return "POST", "/v1/memories", json.dumps(memory).encode(), headers
    if kind == "id":
        path = chance.choice(("/v1/memories/{}", "/v1/memories/{}/history", "/v1/memories?{}"))
        asked = (
            urlencode({"scope": "/".join(_words(chance, 3))})
            if path.endswith("?{}")
            else str(uuid.uuid4())
        )
        return "GET", path.format(asked), None, headers
    if kind == "stranger":
        return (
            "GET",
            "/v1/stats",
            None,
            {"Authorization": f"Bearer tvt.{_word(chance)[:20]}.{_word(chance)}.x"},
        )
    return _word(chance)[:10].upper(), "/" + "/".join(_words(chance, 3)), None, headers


def _recall(chance: random.Random) -> dict[str, Any]:
    words = [_long_word(chance)] if chance.random() < 0.1 else _words(chance, 60)
    asked: dict[str, Any] = {"query": " ".join(words)[:2_000]}
    if chance.random() < 0.3:
        asked["scope"] = "/".join(_words(chance, 3))
        asked["tags"] = _words(chance, 3)
    if chance.random() < 0.3:
        asked["recipe"] = f"bm25(k1={chance.random():.6f}, title={chance.random():.6f})"
    return asked


def _words(chance: random.Random, count: int) -> list[str]:
    return [_word(chance) for _ in range(count)]


def _word(chance: random.Random) -> str:
    return "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(8, 16)))


def _long_word(chance: random.Random) -> str:
    letters = chance.choice(("abcdefgh", "数据库内存增长", "äöüéèñ", "a1B2c3"))
    return "".join(chance.choices(letters, k=chance.randint(500, 2_000)))


def _serve(folder: str, share: int) -> None:
    from trivet.common.bounded_cache import BoundedCache

    made = BoundedCache.__init__

    def smaller(cache: BoundedCache[Any, Any], most_bytes: int, *others: Any) -> None:
        made(cache, max(1, most_bytes // share), *others)

    BoundedCache.__init__ = smaller  # type: ignore[method-assign,assignment]

    from trivet.memory.admin.accounts import RIGHTS, make_key
    from trivet.serve.http.server import listen, run, server_settings
    from trivet.serve.http.tenants import Tenants
    from trivet.settings import Settings
    from trivet.trivet import Trivet

    often = 10**6
    path = str(Path(folder) / "memory.db")
    # No model: it would take most of the time, and words alone allow tens of times more requests.
    plain = Settings(
        path=path, embedder="none", rerank="off", server_requests_a_minute=often, server_burst=often
    )
    settings = server_settings(plain)
    keys = []
    for tenant in TENANTS:
        with Trivet.open(settings=settings, tenant=tenant, background=False) as trivet:
            store = trivet.engine.store
            store.accounts.add_user("ana", "writer")
            keys.append(make_key(store, tenant, "ana", RIGHTS["writer"]).text)
    with listen("127.0.0.1", 0) as listener:
        tenants = Tenants(settings)
        print(json.dumps({"port": listener.getsockname()[1], "keys": keys}), flush=True)
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
        run(tenants, settings, listener, "127.0.0.1")


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        _serve(sys.argv[2], int(sys.argv[3]))
    else:
        print(json.dumps(main(float(sys.argv[1])), indent=1))
