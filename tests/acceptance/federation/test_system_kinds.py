"""Systems over HTTP, MCP and another Trivet work with real servers and processes."""

from __future__ import annotations

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from support.http_server import served, settings_for
from support.waiting import happened, result_of
from support.warm_python import warm
from trivet import Trivet
from trivet.types import Answer

from .conftest import Opened
from .systems import PATIENT_MS, SHORT_MS, health_of, http_server

# Longer than a few recalls take on a busy machine.
SOME_SECONDS_MS = 20_000


def notes_server() -> list[str]:
    """Return the command of a small MCP server."""
    file = Path(__file__).with_name("mcp_notes.py")
    return warm("-c", f"import runpy; runpy.run_path({str(file)!r}, run_name='__main__')")


def ids(answer: Answer) -> list[str]:
    return [hit.id for hit in answer.foreign]


def test_http_get(federation: Opened) -> None:
    def answer(request: BaseHTTPRequestHandler, _: bytes) -> tuple[int, bytes]:
        given = parse_qs(urlsplit(request.path).query)
        return 200, json.dumps(
            {"hits": [{"id": given["q"][0], "score": float(given["n"][0])}]}
        ).encode()

    with http_server(answer) as address:
        url = f"{address}/search?q={{query}}&n={{fetch_k}}"
        memory = federation(wiki={"http": url, "fetch_k": 5, "time_limit_ms": PATIENT_MS})
        (hit,) = memory.recall("a&b=c #d/ü?", federated=True).foreign
    assert (hit.id, hit.legs["wiki"].score) == ("a&b=c #d/ü?", 5.0)


def test_waiting_for_a_system_does_not_block_other_recalls(federation: Opened) -> None:
    requested, go_on = threading.Event(), threading.Event()

    def answer(_: BaseHTTPRequestHandler, __: bytes) -> tuple[int, bytes]:
        requested.set()
        happened(go_on)
        return 200, json.dumps({"hits": [{"id": "late", "score": 1}]}).encode()

    with http_server(answer) as address, ThreadPoolExecutor(1) as threads:
        memory = federation(
            wiki={"http": f"{address}/?q={{query}}", "time_limit_ms": SOME_SECONDS_MS}
        )
        memory.remember("The key is under the mat.")
        waiting = threads.submit(memory.recall, "key", federated=True)
        happened(requested)
        for _ in range(20):  # some of these start after the waiting recall
            assert len(memory.recall("key").hits) == 1
        assert not waiting.done(), "the recalls must not have waited for it"
        go_on.set()
        assert ids(result_of(waiting)) == ["late"]


def test_http_post_with_a_key(federation: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[Any] = []

    def answer(request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        requests.append((request.headers["Authorization"], json.loads(body)))
        return 200, json.dumps({"data": [{"d": {"url": "x"}, "s": 1, "body": "said"}]}).encode()

    body = {"query": {"match": "{query}"}, "size": "{fetch_k}", "fields": ["url"]}
    with http_server(answer) as address:
        member = {"http": address, "body": body, "key_env": "WIKI_KEY", "time_limit_ms": PATIENT_MS}
        paths = {"hits": "data", "id": "d.url", "score": "s", "text": "body"}
        memory = federation(wiki={**member, **paths})
        assert "WIKI_KEY" in (health_of(memory.recall("x", federated=True), "wiki").reason or "")
        monkeypatch.setenv("WIKI_KEY", "sesame")
        (hit,) = memory.recall('say "x"', federated=True).foreign
    assert (hit.id, hit.text) == ("x", "said")
    assert requests == [
        ("Bearer sesame", {"query": {"match": 'say "x"'}, "size": 30, "fields": ["url"]})
    ]


def test_http_errors_floods_redirects_and_absence(federation: Opened) -> None:
    def answer(request: BaseHTTPRequestHandler, _: bytes) -> tuple[int, bytes]:
        if request.path == "/flood":
            return 200, b"x" * 100_000
        if request.path == "/moved":
            return 302, b""
        return 503, b"the index is being built"

    with http_server(answer) as address:
        member = {"time_limit_ms": PATIENT_MS, "most_bytes": 50_000}
        paths = {
            name: {"http": f"{address}/{name}", **member} for name in ("busy", "flood", "moved")
        }
        absent = {"http": "http://127.0.0.1:9/x", **member}
        result = federation(**paths, gone=absent).recall("x", federated=True)
    reasons = {
        name: health_of(result, name).reason or "" for name in ("busy", "flood", "moved", "gone")
    }
    assert "HTTP 503" in reasons["busy"]
    assert "larger than 50000 bytes" in reasons["flood"]
    assert "HTTP 302" in reasons["moved"]
    assert "cannot be reached" in reasons["gone"]


def test_dripping_http_server_times_out(federation: Opened) -> None:
    """A byte now and then keeps each wait short; the total time limit ends it."""
    over = threading.Event()

    def answer(request: BaseHTTPRequestHandler, _: bytes) -> tuple[int, bytes]:
        request.send_response(200)
        request.end_headers()
        while not over.wait(0.02):
            try:
                request.wfile.write(b" ")
                request.wfile.flush()
            except OSError:
                break
        return 200, b""

    with http_server(answer) as address:
        memory = federation(drip={"http": address, "time_limit_ms": SHORT_MS})
        memory.remember("The key is under the mat.")
        result = memory.recall("key", federated=True)
        over.set()
    assert [hit.content for hit in result.hits] == ["The key is under the mat."]
    assert "in time" in (health_of(result, "drip").reason or "")


def test_mcp_tool(federation: Opened) -> None:
    paths = {"hits": "results", "id": "uri", "text": "snippet", "time_limit_ms": PATIENT_MS}
    arguments = {"text": "{query}", "most": "{fetch_k}"}
    notes = {"mcp": notes_server(), "tool": "search", "arguments": arguments, "fetch_k": 3, **paths}
    broken = {"mcp": notes_server(), "tool": "broken", "arguments": {"text": "{query}"}, **paths}
    unknown = {**notes, "tool": "no_such_tool"}
    endless = {**broken, "tool": "endless", "time_limit_ms": 3_000}
    answer = federation(notes=notes, broken=broken, unknown=unknown, endless=endless).recall(
        "key", federated=True
    )
    assert health_of(answer, "notes").answered, answer.health
    assert ids(answer) == ["wiki/key/0", "wiki/key/1", "wiki/key/2"]
    assert answer.foreign[0].text == "key 0"
    assert "the tool failed" in (health_of(answer, "broken").reason or "")
    assert not health_of(answer, "unknown").answered
    assert "in time" in (health_of(answer, "endless").reason or "")


def test_broken_mcp_servers(federation: Opened) -> None:
    member = {"tool": "search", "time_limit_ms": PATIENT_MS}
    memory = federation(
        mad={"mcp": [sys.executable, "-S", "-c", "print('hello there')"], **member},
        dead={"mcp": [sys.executable, "-S", "-c", "import sys; sys.exit('no licence')"], **member},
    )
    answer = memory.recall("x", federated=True)
    assert "not JSON" in (health_of(answer, "mad").reason or "")
    assert "status 1" in (health_of(answer, "dead").reason or "")
    assert "no licence" in next(
        one.detail for one in memory.doctor() if one.check == "federation dead"
    )


def test_another_local_store(federation: Opened, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with Trivet.open(other, embedder="none", background=False) as other_store:
        other_store.remember("The team's key is in the safe.", source="team/keys.md")
        shared = other_store.remember("Keys are counted on Friday.").id
    memory = federation(
        team={"trivet": str(other), "time_limit_ms": PATIENT_MS},
        nowhere={"trivet": str(tmp_path / "missing.db"), "time_limit_ms": PATIENT_MS},
    )
    memory.remember("Keys are counted on Friday.", id=shared)
    for _ in range(2):
        answer = memory.recall("keys", federated=True)
        assert ids(answer) == ["team/keys.md"]
        assert [(hit.id, hit.why.legs["team"].rank is not None) for hit in answer.hits] == [
            (shared, True)
        ]
    assert "there is no store" in (health_of(answer, "nowhere").reason or "")
    assert not (tmp_path / "missing.db").exists()


def test_trivet_server_by_http_and_by_mcp(
    federation: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(settings_for(tmp_path / "server.db")) as server:
        ana = server.client("ana")
        ana.done(
            "POST",
            "/v1/memories",
            json={"content": "The key is in the safe.", "source": "team/keys.md"},
        )
        monkeypatch.setenv("TEAM_KEY", server.key("ana"))
        member = {"key_env": "TEAM_KEY", "time_limit_ms": PATIENT_MS}
        tool = {"tool": "memory_recall", "arguments": {"query": "{query}"}, "text": "content"}
        memory = federation(
            team={"trivet": server.address, **member},
            tool={"mcp": f"{server.address}/mcp", **tool, **member},
            stranger={"trivet": server.address, "time_limit_ms": PATIENT_MS},
        )
        answer = memory.recall("where is the key", federated=True)
    assert health_of(answer, "team").answered, answer.health
    assert health_of(answer, "tool").answered, answer.health
    assert not health_of(answer, "stranger").answered
    by_system = {hit.systems: hit for hit in answer.foreign}
    assert by_system["team",].id == "team/keys.md"
    assert by_system["tool",].text == "The key is in the safe."
