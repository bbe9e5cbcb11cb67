"""Lightweight HTTP clients: on two cores, heavier ones would be what is measured.

python benchmarks/server_clients.py ADDRESS CLIENTS SECONDS < keys
"""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import statistics
import subprocess
import sys
import time
from typing import Any
from urllib.parse import urlsplit

from texts import memories, queries

RECALLS_TO_A_STORE = 9


class Client:
    def __init__(self, address: str, key: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(address).netloc)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def recall(self, query: str) -> Any:
        self._connection.request("POST", "/v1/recall", json.dumps({"query": query}), self._headers)
        answer = self._connection.getresponse()
        body = json.loads(answer.read())
        assert answer.status == 200, body
        return body


def load_from_another_process(
    address: str, keys: list[str], clients: int, seconds: float
) -> dict[str, Any]:
    arguments = [sys.executable, __file__, address, str(clients), str(seconds)]
    answer = subprocess.run(
        arguments, input="\n".join(keys), capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


class _Load:
    def __init__(self, address: str, keys: list[str], seconds: float) -> None:
        parts = urlsplit(address)
        self._host, self._port = str(parts.hostname), int(parts.port or 80)
        self._keys = keys
        self._queries = queries(3000, seed=23)
        self._texts = list(memories(3000, seed=29))
        self._end = time.perf_counter() + seconds
        self.times: dict[str, list[float]] = {"recall": [], "store": []}
        self.errors: list[str] = []

    async def client(self, number: int) -> None:
        chance = random.Random(number)
        reader, writer = await asyncio.open_connection(self._host, self._port)
        while time.perf_counter() < self._end:
            kind = "store" if chance.randrange(RECALLS_TO_A_STORE + 1) == 0 else "recall"
            key = self._keys[chance.randrange(len(self._keys))]
            started = time.perf_counter()
            writer.write(self._request(kind, key, chance))
            status, body = await _answer(reader)
            self.times[kind].append(1000 * (time.perf_counter() - started))
            if status not in (200, 201):
                self.errors.append(f"{status} {body[:200]!r}")
        writer.close()
        await writer.wait_closed()

    def _request(self, kind: str, key: str, chance: random.Random) -> bytes:
        if kind == "recall":
            path, value = (
                "/v1/recall",
                {"query": f"{chance.choice(self._queries)} {chance.randrange(10**6)}"},
            )
        else:
            path, value = (
                "/v1/memories",
                {"content": f"{chance.choice(self._texts)} {chance.randrange(10**9)}"},
            )
        body = json.dumps(value).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nAuthorization: Bearer "
            f"{key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head[9:12])
    length = next(
        int(line[15:])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    )
    return status, await reader.readexactly(length)


async def _run(load: _Load, clients: int) -> None:
    await asyncio.gather(*(load.client(number) for number in range(clients)))


def main() -> None:
    address, clients, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    load = _Load(address, sys.stdin.read().split(), seconds)
    asyncio.run(_run(load, clients))
    figures: dict[str, Any] = {
        "requests": sum(map(len, load.times.values())),
        "recalls": len(load.times["recall"]),
        "errors": len(load.errors),
        "first errors": load.errors[:3],
        "client's own processor seconds": round(time.process_time(), 1),
    }
    for kind, times in load.times.items():
        ordered = sorted(times)
        p95 = round(ordered[int(len(ordered) * 0.95)], 1)
        figures[f"{kind} ms"] = {
            "p50": round(statistics.median(ordered), 1),
            "p95": p95,
            "most": round(ordered[-1], 1),
        }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
