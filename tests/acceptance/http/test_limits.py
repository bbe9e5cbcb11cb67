"""Size, time, rate and number of requests are bounded, and each refusal names its limit."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.http_server import Served, problem, served, settings_for
from support.waiting import happened, result_of, taken
from trivet import Trivet
from trivet.contract import RecallRequest
from trivet.serve.http import limits as connection

from .raw import Raw

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def small(path: Path) -> Iterator[Served]:
    """A server with small limits."""
    narrow = {
        "server_request_bytes": 2048,
        "server_request_seconds": 0.3,
        "server_requests_at_once": 2,
    }
    with served(settings_for(path, **narrow)) as running:
        yield running


def test_large_body_is_refused_by_its_announced_size(small: Served) -> None:
    """The body is never sent."""
    with Raw(small.address) as raw:
        raw.head(
            "POST",
            "/v1/memories",
            small.key(),
            Content_Type="application/json",
            Content_Length=10**9,
        )
        assert raw.status() == 413


def test_large_body_without_announced_size_is_refused(small: Served) -> None:
    with Raw(small.address) as raw:
        raw.head(
            "POST",
            "/v1/memories",
            small.key(),
            Content_Type="application/json",
            Transfer_Encoding="chunked",
        )
        raw.socket.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")  # no end of the body
        assert raw.status() == 413


def test_large_body_refusal_text(small: Served) -> None:
    message = small.client().refused(413, "POST", "/v1/memories", content=b"x" * 3000, headers=JSON)
    assert "2,048 bytes" in message
    assert "/v1/import" in message


@pytest.mark.parametrize("path", ["/v1/memories", "/mcp"])
def test_body_that_never_comes(small: Served, path: str) -> None:
    with Raw(small.address) as raw:
        raw.head("POST", path, small.key(), Content_Type="application/json", Content_Length=10)
        raw.socket.sendall(b'{"con')
        assert raw.status() == 408


@pytest.mark.parametrize(
    "sent", [b"", b"GET /heal", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "]
)
def test_head_that_never_comes(small: Served, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slowloris: connections that are opened and never used."""
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.05)
    with Raw(small.address) as raw:
        raw.socket.sendall(sent)
        assert raw.closed()


def test_second_head_that_never_comes(small: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.2)
    with Raw(small.address) as raw:
        raw.socket.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert raw.until(b'"ok"}').startswith(b"HTTP/1.1 200")
        raw.socket.sendall(b"GET /heal")
        assert raw.closed()


def test_too_many_connections(small: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest idle connection makes room; a busy one stays, so the next is refused."""
    monkeypatch.setattr(connection, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(connection, "IDLE_CLOSED_AT_ONCE", 1)
    ask = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with Raw(small.address) as first, Raw(small.address) as second, Raw(small.address) as third:
        assert first.closed()
        for one in (second, third):
            one.socket.sendall(ask)
            assert one.status() == 200
    monkeypatch.setattr(connection, "MAX_CONNECTIONS", 1)
    with Raw(small.address) as busy:
        headers = {
            "Content_Type": "application/json",
            "Content_Length": 10,
            "Expect": "100-continue",
        }
        busy.head("POST", "/v1/memories", small.key(), **headers)
        assert busy.until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        with Raw(small.address) as late:
            assert late.closed()


def test_idle_connections_do_not_lock_others_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_CONNECTIONS", 20)
    with served(settings_for(path)) as server, ExitStack() as crowd:
        ana = server.client()
        for _ in range(60):
            crowd.enter_context(Raw(server.address))
        assert ana("GET", "/v1/stats").status_code == 200


def test_unread_answer_is_dropped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "UNREAD_SECONDS", 0.05)
    with (
        served(settings_for(path, server_request_seconds=3600.0)) as server,
        Raw(server.address) as raw,
    ):
        request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with contextlib.suppress(ConnectionError):
            while True:  # until the buffers on both sides are full and the server gives up
                raw.socket.sendall(request)


class Held:
    """Recalls that block until the test releases them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered = threading.Semaphore(0)
        self.gate = threading.Event()
        whole = Trivet.perform

        def perform(memory: Trivet, request: Any) -> Any:
            if isinstance(request, RecallRequest):
                self.entered.release()
                happened(self.gate)
            return whole(memory, request)

        monkeypatch.setattr(Trivet, "perform", perform)


def test_too_many_requests(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    with (
        served(settings_for(path, server_requests_at_once=2)) as small,
        ThreadPoolExecutor(2) as threads,
    ):
        clients = [small.client() for _ in range(3)]
        running = [threads.submit(client, "GET", "/v1/recall?query=x") for client in clients[:2]]
        for _ in running:
            taken(held.entered)
        answer = clients[2]("GET", "/v1/stats")
        alive = clients[2]("GET", "/healthz")
        held.gate.set()
        assert [result_of(one).status_code for one in running] == [200, 200]
        assert clients[2]("GET", "/v1/stats").status_code == 200
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert problem(answer)["type"].endswith(":busy")
    assert alive.status_code == 200  # monitoring must not take the server for dead


def test_slow_work_times_out(small: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    held, ana = Held(monkeypatch), small.client()
    assert "not finished after 0.3 s" in ana.refused(504, "GET", "/v1/recall?query=x")
    held.gate.set()
    assert ana("GET", "/v1/stats").status_code == 200


def test_hanging_reads_do_not_block_writes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = {"server_threads": 1, "server_request_seconds": 0.3}
    with served(settings_for(path, **narrow)) as small:
        held, ana = Held(monkeypatch), small.client()
        ana.refused(504, "GET", "/v1/recall?query=x")  # it occupies the only reader thread
        assert "Nothing was done" in ana.refused(503, "GET", "/v1/memories")
        assert ana("GET", "/readyz").status_code == 200
        ana.done("POST", "/v1/memories", json={"content": "x"})  # no write waits behind it
        held.gate.set()
        while (answer := ana("GET", "/v1/memories")).status_code == 503:
            pass
        assert answer.json()["total"] == 1


def test_key_over_its_rate_is_refused(path: Path) -> None:
    with served(settings_for(path, server_burst=3, server_requests_a_minute=1)) as server:
        ana, ben = server.client("ana"), server.client("ben")
        assert [ana("GET", "/v1/stats").status_code for _ in range(4)] == [200, 200, 200, 429]
        answer = ana("POST", "/v1/memories", json={"content": "x"})
        assert problem(answer)["type"].endswith(":too-many")
        assert 0 < int(answer.headers["retry-after"]) <= 60
        assert ben("GET", "/v1/memories").json()["total"] == 0
        assert ana("GET", "/healthz").status_code == 200


def test_endless_work_does_not_block_shutdown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    with served(
        settings_for(path, server_request_seconds=0.2, server_shutdown_seconds=0)
    ) as server:
        server.client().refused(504, "GET", "/v1/recall?query=x")
    with pytest.raises(httpx2.ConnectError):  # the server has ended with that work still running
        httpx2.get(f"{server.address}/healthz", trust_env=False)
    held.gate.set()
    server.house.close()  # the server left it open because a thread was using it


def test_one_key_cannot_take_all_request_slots(path: Path) -> None:
    """The key sends half a request each time and never finishes."""
    with served(settings_for(path, server_requests_at_once=8)) as server:
        greedy, other = server.key("greedy"), server.client("other")
        headers = {
            "Content_Type": "application/json",
            "Content_Length": 10,
            "Expect": "100-continue",
        }
        with Raw(server.address) as one, Raw(server.address) as two:
            for half in (one, two):
                half.head("POST", "/v1/memories", greedy, **headers)
                assert half.until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 "), (
                    "the server has admitted it"
                )
            assert server.with_key(greedy)("GET", "/v1/stats").status_code == 429
            assert other("GET", "/v1/stats").status_code == 200
