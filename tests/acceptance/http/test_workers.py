"""`trivet serve --workers`: several processes are one server."""

from __future__ import annotations

import re
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from support.waiting import LIMIT_SECONDS, result_of
from trivet import Trivet

from .process import Process, key_for, process

# With so many connections each of two processes has some, but for one time in thousands.
CONNECTIONS = 12
# Ends with an error where the store that is opened to look for users has a worker.
LOOKING = """
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


def test_one_that_is_killed_is_replaced_and_nothing_acknowledged_is_lost(
    path: Path, tmp_path: Path
) -> None:
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
    assert re.search(
        r"trivet-worker-\d ended with -9; another one takes its place\.", log.read_text()
    )
    with Trivet.open(path, embedder="none", background=False) as trivet:
        assert {one.id for one in trivet.list(limit=100).memories} == {first, *ids}


def test_who_waits_for_news_in_one_hears_of_what_was_written_in_another_and_all_count_together(
    path: Path,
) -> None:
    key = key_for(path)
    with (
        process("--path", str(path), "--workers", "2") as server,
        ThreadPoolExecutor(CONNECTIONS) as threads,
    ):
        known = server.client(key).done("GET", "/v1/sync/wait")["known"]
        clients = [server.client(key) for _ in range(CONNECTIONS)]
        for (
            client
        ) in clients:  # each has its connection, and whoever it reaches knows where news begins
            client.done("GET", WAITS.format("older"))
        waiting = [threads.submit(client.done, "GET", WAITS.format(known)) for client in clients]
        server.client(key).done("POST", "/v1/memories", json={"content": "News."})
        assert {result_of(one)["known"] for one in waiting} != {known}
        told = server.client(key)("GET", "/metrics").text
        counted = re.search(
            r'trivet_http_requests_total\{.*route="/v1/sync/wait",status="200"\} (\d+)', told
        )
        assert counted is not None, told
        assert float(counted[1]) == 1 + 2 * CONNECTIONS


def test_they_end_with_the_process_that_looks_after_them(path: Path) -> None:
    with process("--path", str(path), "--workers", "2") as server:
        server.client().done("GET", "/readyz")
        running = workers(server)
        server.running.send_signal(signal.SIGKILL)
        for one in running:
            one.wait(LIMIT_SECONDS)
        server.end()


def test_the_process_that_looks_after_them_takes_up_no_work_of_the_store(path: Path) -> None:
    key = key_for(path)
    with process("--path", str(path), "--workers", "2", program=("-c", LOOKING)) as server:
        assert server.client(key).done("GET", "/v1/memories")["total"] == 0


def workers(server: Process) -> list[psutil.Process]:
    """The processes that serve, which a process that does nothing else has forked."""
    return [
        grandchild
        for child in psutil.Process(server.running.pid).children()
        for grandchild in child.children()
    ]
