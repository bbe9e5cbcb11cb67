"""With `trivet serve --workers`, several processes act as one server."""

from __future__ import annotations

import re
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from support.waiting import LIMIT_SECONDS, result_of
from trivet import Trivet

from .process import Process, key_for, process

# With this many connections each of two processes gets some, except once in thousands of runs.
CONNECTIONS = 12
# Fails if the store that is opened to look for users has a worker.
CHECKED_MAIN = """
import threading
from trivet.cli import main
from trivet.serve.http.tenants import Tenants

has_users = Tenants.has_users

def look(tenants):
    assert "trivet-worker" not in [one.name for one in threading.enumerate()]
    return has_users(tenants)

Tenants.has_users = look
main()
"""
WAITS = "/v1/sync/wait?seconds=100&known={}"


def test_killed_worker_is_replaced_and_loses_nothing(path: Path, tmp_path: Path) -> None:
    key, log = key_for(path), tmp_path / "log"
    with process("--path", str(path), "--workers", "2", log=str(log)) as server:
        first = server.client(key).done(
            "POST", "/v1/memories", json={"content": "Before it died."}
        )["id"]
        victim, other = workers(server)
        victim.kill()
        victim.wait(LIMIT_SECONDS)
        ids = [
            server.client(key).done(
                "POST", "/v1/memories", json={"content": f"After it died, {number}."}
            )["id"]
            for number in range(CONNECTIONS)
        ]
        assert (
            server.client(key).done("GET", f"/v1/memories/{first}")["content"] == "Before it died."
        )
        server.signal()
        assert server.end()[0] == 0
        assert not other.is_running()
    assert re.search(r"trivet-worker-\d ended with -9; a new one replaces it\.", log.read_text())
    with Trivet.open(path, embedder="none", background=False) as trivet:
        assert {one.id for one in trivet.list(limit=100).memories} == {first, *ids}


def test_workers_share_news_and_metrics(
    path: Path,
) -> None:
    key = key_for(path)
    with (
        process("--path", str(path), "--workers", "2") as server,
        ThreadPoolExecutor(CONNECTIONS) as threads,
    ):
        known = server.client(key).done("GET", "/v1/sync/wait")["known"]
        clients = [server.client(key) for _ in range(CONNECTIONS)]
        for client in clients:  # each has a connection to a worker that knows where news begins
            client.done("GET", WAITS.format("older"))
        waiting = [threads.submit(client.done, "GET", WAITS.format(known)) for client in clients]
        server.client(key).done("POST", "/v1/memories", json={"content": "News."})
        assert {result_of(one)["known"] for one in waiting} != {known}
        metrics = server.client(key)("GET", "/metrics").text
        counted = re.search(
            r'trivet_http_requests_total\{.*route="/v1/sync/wait",status="200"\} (\d+)', metrics
        )
        assert counted is not None, metrics
        assert float(counted[1]) == 1 + 2 * CONNECTIONS


def test_workers_end_with_their_supervisor(path: Path) -> None:
    with process("--path", str(path), "--workers", "2") as server:
        server.client().done("GET", "/readyz")
        running = workers(server)
        server.running.send_signal(signal.SIGKILL)
        for one in running:
            one.wait(LIMIT_SECONDS)
        server.end()


def test_supervisor_does_no_store_work(path: Path) -> None:
    key = key_for(path)
    with process("--path", str(path), "--workers", "2", program=("-c", CHECKED_MAIN)) as server:
        assert server.client(key).done("GET", "/v1/memories")["total"] == 0


def workers(server: Process) -> list[psutil.Process]:
    """Return the serving processes, which the supervisor's only child forked."""
    return [
        grandchild
        for child in psutil.Process(server.running.pid).children()
        for grandchild in child.children()
    ]
