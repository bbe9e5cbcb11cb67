"""Whole stores over HTTP arrive complete, in order and never all in memory at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from support.http_server import Client, Served, served, settings_for
from support.waiting import happened
from trivet import Trivet
from trivet.serve.http import limits as connection
from trivet.serve.http.endpoints import endpoint
from trivet.serve.http.endpoints import export_import as streams
from trivet.serve.http.endpoints.export_import import (
    CHUNK_BYTES,
    MAX_CHUNKS_AHEAD,
    STREAMS_AT_ONCE,
    STREAMS_PER_USER,
    ExportStream,
)
from trivet.types import Caller

from .raw import Raw

NDJSON = {"Content-Type": "application/x-ndjson"}


def lines_of(ana: Client, path: str = "/v1/export") -> list[dict[str, Any]]:
    answer = ana("GET", path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [msgspec.json.decode(line) for line in answer.content.rstrip(b"\n").split(b"\n")]


def test_export_and_import_round_trip(ana: Client, path: Path) -> None:
    ids = [
        ana.done("POST", "/v1/memories", json={"content": f"Knot {number}."})["id"]
        for number in range(5)
    ]
    ana.done("PATCH", f"/v1/memories/{ids[0]}", json={"content": "Knot 0, a bowline."})
    ana.done("PUT", f"/v1/memories/{ids[0]}/links/see-also/{ids[1]}")
    exported = ana("GET", "/v1/export").content
    with served(settings_for(path)) as other:
        ben = other.client("ben")
        imported = ben.done("POST", "/v1/import", content=exported, headers=NDJSON)
        assert (imported["stored"], imported["links"], imported["errors"]) == (5, 1, [])
        assert (
            ben.done("GET", f"/v1/memories/{ids[0]}/history")[0]["memory"]["content"] == "Knot 0."
        )
        again = ben.done("POST", "/v1/import", content=exported, headers=NDJSON)
        assert (again["stored"], again["unchanged"]) == (0, 5)
        assert len(lines_of(ben)) == len(lines_of(ana))


def test_sensitive_memories_need_the_reveal_right(server: Served, ana: Client) -> None:
    ana.done("POST", "/v1/memories", json={"content": "The hidden cove.", "sensitive": True})
    assert "hidden cove" not in ana("GET", "/v1/export").text
    assert "hidden cove" in ana("GET", "/v1/export?include_sensitive=true").text
    reader = server.with_key(server.house.make_key("ana", "admin", ("read",)))
    assert "reveal" in reader.refused(403, "GET", "/v1/export?include_sensitive=true")
    assert reader("GET", "/v1/export").status_code == 200


def test_import_names_bad_lines_and_takes_the_rest(ana: Client) -> None:
    body = b'{"content": "Good."}\n\n{"content": "\xff"}\nnonsense\n{"contents": "x"}\n{"content": "Also good."}'
    imported = ana.done("POST", "/v1/import", content=body, headers=NDJSON)
    assert imported["stored"] == 2
    assert [error.partition(":")[0] for error in imported["errors"]] == [
        "line 3",
        "line 4",
        "line 5",
    ]


@pytest.mark.parametrize("cut", [1, 7, 4096])
def test_import_may_arrive_in_any_pieces(path: Path, cut: int) -> None:
    body = "".join(f'{{"content": "Wörter {number}"}}\n' for number in range(40)).encode()
    pieces = [body[start : start + cut] for start in range(0, len(body), cut)]
    with served(settings_for(path)) as server:
        imported = server.client().done("POST", "/v1/import", content=iter(pieces), headers=NDJSON)
    assert (imported["stored"], imported["errors"]) == (40, [])


def test_import_of_another_content_type(ana: Client) -> None:
    assert "application/x-ndjson" in ana.refused(
        415, "POST", "/v1/import", content=b"{}", headers={"Content-Type": "application/json"}
    )


def test_line_that_never_ends(ana: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(
        connection, "HEAD_SECONDS", 0.2
    )  # how long a body may continue after its answer
    pieces = (b"x" * 400 for _ in range(10**9))  # unreadable as a whole
    assert "A line has more than 1,000 bytes" in ana.refused(
        413, "POST", "/v1/import", content=pieces, headers=NDJSON
    )


def test_import_that_never_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.2)
    with served(settings_for(path, server_import_bytes=10_000)) as server:
        pieces = (b'{"content": "again"}\n' for _ in range(10**9))
        message = server.client().refused(413, "POST", "/v1/import", content=pieces, headers=NDJSON)
    assert "more than 10,000 bytes" in message


def test_import_that_stops(path: Path) -> None:
    with (
        served(settings_for(path, server_request_seconds=0.2)) as server,
        Raw(server.address) as raw,
    ):
        raw.head(
            "POST",
            "/v1/import",
            server.key(),
            Content_Type="application/x-ndjson",
            Content_Length=100,
        )
        raw.socket.sendall(b'{"content": "one"}\n')
        assert raw.status() == 408


def test_import_of_a_lost_client_frees_its_slot(path: Path) -> None:
    with served(settings_for(path)) as server:
        key = server.key()
        for _ in range(2 * STREAMS_AT_ONCE):
            with Raw(server.address) as raw:
                raw.head(
                    "POST",
                    "/v1/import",
                    key,
                    Content_Type="application/x-ndjson",
                    Content_Length=100,
                )
                raw.socket.sendall(b'{"content": "one"}\n')
        ana = server.with_key(key)
        while (
            answer := ana("POST", "/v1/import", content=b'{"content": "x"}', headers=NDJSON)
        ).status_code == 503:
            pass
        assert answer.json()["stored"] == 1


class Endless:
    """An export that continues until nobody reads it, and counts its lines."""

    def __init__(self) -> None:
        self.made = 0
        self.ended = threading.Event()

    def lines(self) -> Iterator[str]:
        try:
            while True:
                self.made += 1
                yield "x" * CHUNK_BYTES
        finally:
            self.ended.set()


def test_export_waits_for_its_reader() -> None:
    endless = Endless()

    async def read() -> int:
        outflow = ExportStream(endless.lines, lambda: None)
        thread = threading.Thread(target=outflow.make)
        thread.start()
        chunks = outflow.chunks()
        for _ in range(10):
            await anext(chunks)
        await chunks.aclose()  # type: ignore[attr-defined]
        await asyncio.to_thread(thread.join)
        return endless.made

    assert asyncio.run(read()) <= 10 + MAX_CHUNKS_AHEAD + 1
    assert endless.ended.is_set()


def test_export_of_a_lost_client_ends(
    ana: Client, server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = Endless()
    monkeypatch.setattr(Trivet, "export", lambda memory, **given: endless.lines())
    with ana.http.stream("GET", "/v1/export") as answer:
        pieces = answer.iter_bytes(1000)  # held, because dropping the iterator closes the answer
        assert len(next(pieces)) == 1000
        assert not endless.ended.is_set()
    happened(endless.ended)


def revoke(server: Served, key: str) -> None:
    """Revoke a key as `trivet key revoke` does, in this process or another."""
    server.house._first_tenant().engine.store.accounts.revoke(key.split(".")[2])


def test_revoked_key_ends_its_running_export(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless, key = Endless(), server.key()
    monkeypatch.setattr(Trivet, "export", lambda memory, **given: endless.lines())
    with server.with_key(key).http.stream("GET", "/v1/export") as answer:
        pieces = answer.iter_bytes(CHUNK_BYTES)
        next(pieces)
        revoke(server, key)
        with pytest.raises(
            httpx2.RemoteProtocolError
        ):  # cut off, so that no client takes it for complete
            for _ in pieces:
                pass
    happened(endless.ended)


def next_request_admitted(server: Served, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """An event set when the server has checked the key of the next request."""
    known, look = threading.Event(), server.house.caller

    def caller(key: str) -> Caller:
        found = look(key)
        known.set()
        return found

    monkeypatch.setattr(server.house, "caller", caller)
    return known


def test_revoked_key_ends_its_running_import(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, known = server.key("cleo", "writer"), next_request_admitted(server, monkeypatch)

    def lines() -> Iterator[bytes]:
        yield b'{"content": "before"}\n'
        happened(known)
        revoke(server, key)
        yield b'{"content": "after"}\n'

    message = server.with_key(key).refused(
        401, "POST", "/v1/import", content=lines(), headers=NDJSON
    )
    assert "revoked" in message
    cleo = server.client("cleo", "writer")
    assert [one["content"] for one in cleo.done("GET", "/v1/memories")["memories"]] in (
        [],
        ["before"],
    )


def test_key_revoked_while_its_request_arrives_does_nothing(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "KEY_RECHECK_SECONDS", 0)  # treat every request as slow
    for path in ("/v1/memories", "/v1/memories/batch", "/mcp"):
        key = server.key("dora", "writer")
        body: dict[str, Any] = (
            {"content": "late"} if path == "/v1/memories" else {"memories": [{"content": "late"}]}
        )
        if path == "/mcp":
            call = {"name": "memory_store", "arguments": {"content": "late"}}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}

        known = next_request_admitted(server, monkeypatch)

        def pieces(
            whole: bytes = msgspec.json.encode(body), key: str = key, known: threading.Event = known
        ) -> Iterator[bytes]:
            yield whole[:5]
            happened(known)
            revoke(server, key)
            yield whole[5:]

        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }
        answer = server.with_key(key)("POST", path, content=pieces(), headers=headers)
        assert answer.status_code == 401 or answer.json()["result"]["isError"], answer.text
    assert server.client("dora", "writer").done("GET", "/v1/memories")["total"] == 0


def test_export_of_a_client_that_reads_nothing_ends(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = Endless()
    monkeypatch.setattr(Trivet, "export", lambda memory, **given: endless.lines())
    with (
        served(settings_for(path, server_request_seconds=0.3)) as server,
        Raw(server.address) as raw,
    ):
        raw.head("GET", "/v1/export", server.key())
        happened(endless.ended)
        assert endless.made >= MAX_CHUNKS_AHEAD, (
            "the client's silence must end it, not a lack of lines"
        )
        assert server.client()("GET", "/v1/stats").status_code == 200


def test_too_many_exports(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    exports = [Endless() for _ in range(STREAMS_AT_ONCE)]
    waiting = iter(exports)
    monkeypatch.setattr(Trivet, "export", lambda memory, **given: next(waiting).lines())
    clients = [
        server.client(f"user{number // STREAMS_PER_USER}") for number in range(STREAMS_AT_ONCE)
    ]
    answers = [
        client.http.send(client.http.build_request("GET", "/v1/export"), stream=True)
        for client in clients
    ]
    assert "exports and imports run at a time" in server.client().refused(503, "GET", "/v1/export")
    assert server.client()("GET", "/v1/stats").status_code == 200
    for answer, export in zip(answers, exports, strict=True):
        answer.close()
        happened(export.ended)


def test_too_many_exports_of_one_user(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    exports = [Endless() for _ in range(STREAMS_PER_USER + 1)]
    waiting = iter(exports)
    monkeypatch.setattr(Trivet, "export", lambda memory, **given: next(waiting).lines())
    greedy = [server.client("greedy") for _ in range(STREAMS_PER_USER + 1)]
    clients = [*greedy[:-1], server.client("other")]
    answers = [
        client.http.send(client.http.build_request("GET", "/v1/export"), stream=True)
        for client in clients[:-1]
    ]
    assert "per user" in greedy[-1].refused(503, "GET", "/v1/export")
    answers.append(
        clients[-1].http.send(clients[-1].http.build_request("GET", "/v1/export"), stream=True)
    )
    assert [answer.status_code for answer in answers] == [200] * len(answers)
    for answer, export in zip(answers, exports, strict=True):
        answer.close()
        happened(export.ended)


def test_export_that_fails_at_once_is_a_500(ana: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Iterator[str]:
        yield str(1 // 0)

    monkeypatch.setattr(Trivet, "export", lambda memory, **given: broken())
    message = ana.refused(500, "GET", "/v1/export")
    assert "division" not in message


def test_concurrent_exports_are_complete(ana: Client, server: Served) -> None:
    clients = [server.client() for _ in range(STREAMS_PER_USER)]
    with ThreadPoolExecutor(STREAMS_PER_USER) as threads:
        exports = list(threads.map(lambda client: client("GET", "/v1/export").content, clients))
    assert len(set(exports)) == 1
