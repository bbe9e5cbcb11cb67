"""The server as a process: where it listens, what it logs, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import threading
from pathlib import Path

import httpx2
import pytest

from support.command_line import process as command
from support.waiting import ended, taken
from trivet import Trivet

from .process import Process, key_for, process
from .raw import Raw


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_listens_and_a_signal_ends_it_well(
    path: Path, number: signal.Signals
) -> None:
    with process("--path", str(path)) as server:
        assert re.fullmatch(
            r"Trivet listens on http://127\.0\.0\.1:\d+\. Ctrl-C ends it\.\n", server.first_line
        )
        assert server.client()("GET", "/readyz").status_code == 200
        server.signal(number)
        status, errors = server.end()
    assert status == 0
    assert "Traceback" not in errors


class Writers:
    """Clients that store as fast as they can, and remember what was acknowledged."""

    def __init__(self, server: Process, key: str, count: int) -> None:
        self.acknowledged: set[str] = set()
        self.refused: list[int] = []
        self.enough = threading.Semaphore(0)
        self._server, self._key = server, key
        self._threads = [
            threading.Thread(target=self._write, args=(number,)) for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            ended(thread)

    def _write(self, number: int) -> None:
        client = self._server.client(self._key)
        for turn in range(10**6):
            try:
                answer = client(
                    "POST", "/v1/memories", json={"content": f"Entry {turn} of writer {number}."}
                )
            except httpx2.TransportError:
                return
            if answer.status_code != 201:
                self.refused.append(answer.status_code)
                return
            self.acknowledged.add(answer.json()["id"])
            self.enough.release()


def test_under_load_everything_accepted_is_finished(path: Path) -> None:
    """Writers are cut off between requests, never within one: what was sent whole is answered, and stored."""
    key = key_for(path)
    with process("--path", str(path)) as server:
        writers = Writers(server, key, 8)
        for _ in range(100):
            taken(writers.enough)
        server.signal()
        status, errors = server.end()
        writers.join()
    assert (status, writers.refused) == (0, []), errors
    with Trivet.open(path, embedder="none", background=False) as memory:
        stored = _everything(memory)
        assert stored == writers.acknowledged
        assert [finding for finding in memory.doctor() if not finding.ok] == []


def test_a_request_under_way_is_finished(path: Path) -> None:
    """Its body comes only after the signal; new connections are refused meanwhile."""
    key = key_for(path)
    body = b'{"content": "Sent in two parts."}'
    with process("--path", str(path)) as server, Raw(server.address) as raw:
        raw.head(
            "POST", "/v1/memories", key, Content_Type="application/json", Content_Length=len(body)
        )
        raw.socket.sendall(body[:10])
        assert server.client()("GET", "/healthz").status_code == 200  # it has read the head by now
        server.signal()
        _until_refused(server.address)
        raw.socket.sendall(body[10:])
        assert raw.status() == 201
        assert server.end()[0] == 0


def test_waiting_has_an_end(path: Path) -> None:
    key = key_for(path)
    settings = {"TRIVET_SERVER_SHUTDOWN_SECONDS": "1", "TRIVET_SERVER_REQUEST_SECONDS": "3000"}
    with process("--path", str(path), **settings) as server, Raw(server.address) as raw:
        raw.head("POST", "/v1/memories", key, Content_Type="application/json", Content_Length=10)
        assert server.client()("GET", "/healthz").status_code == 200
        server.signal()
        assert server.end()[0] == 0


def test_a_second_signal_ends_it_at_once(path: Path) -> None:
    key = key_for(path)
    settings = {"TRIVET_SERVER_SHUTDOWN_SECONDS": "3000", "TRIVET_SERVER_REQUEST_SECONDS": "3000"}
    with process("--path", str(path), **settings) as server, Raw(server.address) as raw:
        raw.head("POST", "/v1/memories", key, Content_Type="application/json", Content_Length=10)
        assert server.client()("GET", "/healthz").status_code == 200
        server.signal()
        _until_refused(server.address)
        server.signal()
        assert server.end()[0] == 1


def _until_refused(address: str) -> None:
    """Until the server takes no new connections."""
    host, port = address.removeprefix("http://").split(":")
    while True:
        try:
            socket.create_connection((host, int(port))).close()
        except (
            ConnectionRefusedError,
            ConnectionResetError,
        ):  # reset: it came just as the socket was closed
            return


def test_killed_without_warning_it_loses_nothing_acknowledged(path: Path) -> None:
    key = key_for(path)
    with process("--path", str(path)) as server:
        writers = Writers(server, key, 4)
        for _ in range(50):
            taken(writers.enough)
        server.signal(signal.SIGKILL)
        server.end()
        writers.join()
    with Trivet.open(path, embedder="none", background=False) as memory:
        assert writers.acknowledged <= _everything(memory)


def test_the_log_has_lines_of_json_without_what_was_said(path: Path) -> None:
    key = key_for(path)
    with process("--path", str(path)) as server:
        ana = server.client(key)
        id = ana.done("POST", "/v1/memories", json={"content": "A walrus in the log."})["id"]
        ana.done("GET", "/v1/recall", params={"query": "walrus"})
        ana.done("GET", f"/v1/memories/{id}")
        ana(
            "POST",
            "/v1/memories",
            content=b'{"content": "walrus',
            headers={"Content-Type": "application/json"},
        )
        ana(
            "POST",
            "/mcp",
            json={"jsonrpc": "2.0", "id": 1, "method": "walrus", "params": {"walrus": 1}},
        )
        ana("WALRUS", "/v1/walrus")
        server.signal()
        _, errors = server.end()
    lines = [json.loads(line) for line in errors.splitlines()]
    assert [(line["method"], line["route"], line["status"]) for line in lines[:4]] == [
        ("POST", "/v1/memories", 201),
        ("GET", "/v1/recall", 200),
        ("GET", "/v1/memories/{id}", 200),
        ("POST", "/v1/memories", 400),
    ]
    assert (lines[0]["tenant"], lines[0]["user"]) == ("default", "ana")
    assert lines[-1]["method"] == "other"
    for word in ("walrus", "WALRUS", id, key, key.rpartition(".")[2]):
        assert word not in errors


def test_another_host_prints_what_it_means(path: Path) -> None:
    with process("--path", str(path), "--host", "0.0.0.0") as server:
        server.signal()
        _, errors = server.end()
    assert "can be reached from other machines, and the traffic is not encrypted" in errors


def test_a_port_that_is_taken(path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = command("serve", "--path", str(path), "--port", str(port))
    assert result.status == 2
    assert result.err.startswith(f"trivet: Cannot listen on 127.0.0.1:{port}: ")
    assert "Give another --host or --port." in result.err
    assert not path.exists()


def test_a_store_that_cannot_be_opened(tmp_path: Path) -> None:
    result = command("serve", "--path", str(tmp_path), "--port", "0")
    assert result.status == 5
    assert "is not a file but a folder" in result.err


# The command with a tenth of the demo's memories: embedding them all takes seconds. Without their links, since many
# of those lead to memories that are left out.
SMALL_DEMO = """
import json, sys
from trivet.cli import main
from trivet.cli.demo import store

some = [{**json.loads(line), "links": []} for line in list(store.lines())[270:310]]
store.lines = lambda: map(json.dumps, some)
sys.exit(main())
"""


def test_the_demo_prints_one_address_that_signs_in(tmp_path: Path) -> None:
    """`make run`: on a port that is taken it takes the next; nothing of it stays."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with process(
            "--demo", "--port", port, program=("-c", SMALL_DEMO), TMPDIR=str(tmp_path)
        ) as server:
            address, _, token = server.address.partition("/#/sign-in/")
            assert not address.endswith(f":{port}")
            with httpx2.Client(base_url=address, trust_env=False, timeout=60) as client:
                key = client.post("/page/sign-in", json={"token": token}).json()["key"]
                asked = {"query": "may I deploy harbor on a Friday morning", "limit": 3}
                answer = client.post(
                    "/v1/recall", json=asked, headers={"Authorization": f"Bearer {key}"}
                )
            assert answer.status_code == 200
            assert any("deploy" in hit["content"] for hit in answer.json()["hits"][:2])
            assert list(tmp_path.iterdir())
            server.signal(signal.SIGINT)
            assert server.end()[0] == 0
    assert list(tmp_path.iterdir()) == []


def _everything(memory: Trivet) -> set[str]:
    return {one.id for one in memory.engine.store.memories.everything()}
