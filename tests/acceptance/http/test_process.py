"""The server process: where it listens, what it logs and how it ends."""

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
def test_prints_its_address_and_ends_on_a_signal(path: Path, number: signal.Signals) -> None:
    with process("--path", str(path)) as server:
        assert re.fullmatch(
            r"Trivet listens on http://127\.0\.0\.1:\d+\. Press Ctrl-C to stop it\.\n",
            server.first_line,
        )
        assert server.client()("GET", "/readyz").status_code == 200
        server.signal(number)
        status, errors = server.end()
    assert status == 0
    assert "Traceback" not in errors


class Writers:
    """Clients that store as fast as they can and record what was acknowledged."""

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


def test_shutdown_under_load_finishes_accepted_requests(path: Path) -> None:
    """Writers are cut off between requests; a complete request is answered and stored."""
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


def test_shutdown_finishes_a_running_request(path: Path) -> None:
    """Its body arrives only after the signal; new connections are refused meanwhile."""
    key = key_for(path)
    body = b'{"content": "Sent in two parts."}'
    with process("--path", str(path)) as server, Raw(server.address) as raw:
        raw.head(
            "POST", "/v1/memories", key, Content_Type="application/json", Content_Length=len(body)
        )
        raw.socket.sendall(body[:10])
        # the server has read the head by now
        assert server.client()("GET", "/healthz").status_code == 200
        server.signal()
        _until_refused(server.address)
        raw.socket.sendall(body[10:])
        assert raw.status() == 201
        assert server.end()[0] == 0


def test_shutdown_wait_is_bounded(path: Path) -> None:
    key = key_for(path)
    settings = {"TRIVET_SERVER_SHUTDOWN_SECONDS": "1", "TRIVET_SERVER_REQUEST_SECONDS": "3000"}
    with process("--path", str(path), **settings) as server, Raw(server.address) as raw:
        raw.head("POST", "/v1/memories", key, Content_Type="application/json", Content_Length=10)
        assert server.client()("GET", "/healthz").status_code == 200
        server.signal()
        assert server.end()[0] == 0


def test_second_signal_ends_it_at_once(path: Path) -> None:
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
    """Wait until the server takes no new connections."""
    host, port = address.removeprefix("http://").split(":")
    while True:
        try:
            socket.create_connection((host, int(port))).close()
        except (
            ConnectionRefusedError,
            ConnectionResetError,
        ):  # reset: the connection arrived just as the socket was closed
            return


def test_kill_loses_nothing_acknowledged(path: Path) -> None:
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


def test_log_is_json_without_user_text(path: Path) -> None:
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


def test_non_local_host_prints_a_warning(path: Path) -> None:
    with process("--path", str(path), "--host", "0.0.0.0") as server:
        server.signal()
        _, errors = server.end()
    assert "can be reached from other machines, and the traffic is not encrypted" in errors


def test_port_in_use(path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = command("serve", "--path", str(path), "--port", str(port))
    assert result.status == 2
    assert result.err.startswith(f"trivet: Cannot listen on 127.0.0.1:{port}: ")
    assert "Choose another --host or --port." in result.err
    assert not path.exists()


def test_store_that_cannot_be_opened(tmp_path: Path) -> None:
    result = command("serve", "--path", str(tmp_path), "--port", "0")
    assert result.status == 5
    assert "is not a file but a folder" in result.err


# Uses a tenth of the demo's memories, because embedding all takes seconds. Drops their links, since
# many would lead to memories left out.
SMALL_DEMO = """
import json, sys
from trivet.cli import main
from trivet.cli import demonstration as store

some = [{**json.loads(line), "links": []} for line in list(store.lines())[270:310]]
store.lines = lambda: map(json.dumps, some)
sys.exit(main())
"""


def test_demo_prints_one_address_that_signs_in(tmp_path: Path) -> None:
    """`make run` uses the next port if one is taken, and leaves nothing behind."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with process(
            "--demo", "--port", port, program=("-c", SMALL_DEMO), TMPDIR=str(tmp_path)
        ) as server:
            address, _, token = server.address.partition("/#/sign-in/")
            assert not address.endswith(f":{port}")
            with httpx2.Client(base_url=address, trust_env=False, timeout=60) as client:
                key = client.post("/page/sign-in", json={"token": token}).json()["key"]
                query = {"query": "may I deploy harbor on a Friday morning", "limit": 3}
                answer = client.post(
                    "/v1/recall", json=query, headers={"Authorization": f"Bearer {key}"}
                )
            assert answer.status_code == 200
            assert any("deploy" in hit["content"] for hit in answer.json()["hits"][:2])
            assert list(tmp_path.iterdir())
            server.signal(signal.SIGINT)
            assert server.end()[0] == 0
    assert list(tmp_path.iterdir()) == []


def _everything(memory: Trivet) -> set[str]:
    return {one.id for one in memory.engine.store.memories.everything()}
