"""Neither a lying server nor a lying laptop writes anything, and sync continues."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.http_server import served, settings_for
from support.waiting import ended
from trivet import StoreError, Trivet, TrivetError
from trivet.common.ids import new_id
from trivet.memory.passages import PASSAGE_VERSION
from trivet.store.records import Model
from trivet.sync import exchange as client
from trivet.sync import verbs
from trivet.sync.messages import Embedded
from trivet.sync.vectors import _checked, _sum
from trivet.sync.verbs import keep_key

AT = "2026-01-01T00:00:00Z"
DEEP = b"[" * 100_000


class Liar:
    """A server that greets correctly and answers every pull as the test chooses."""

    def __init__(self) -> None:
        self.says: tuple[bytes, dict[str, str]] = (b"", {})
        liar = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hello = {
                    "oldest_protocol": 1,
                    "newest_protocol": 7,
                    "user": "ana",
                    "sensitive": False,
                    "mood": "sly",
                }
                self._send(json.dumps(hello).encode(), {})

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                assert request["protocol"] == 1
                self._send(*liar.says)

            def _send(self, body: bytes, headers: dict[str, str]) -> None:
                self.send_response(200)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}
        )
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        ended(self._thread)
        self._server.server_close()


@pytest.fixture
def liar() -> Iterator[Liar]:
    made = Liar()
    yield made
    made.stop()


def page(*items: object, **more: Any) -> bytes:
    place = {"epoch": "e", "seq": 1, "top": 1, "mark": "m"}
    last = {"type": "page", "start": 0, "place": place, "more": False, "items": [], **more}
    return b"".join(json.dumps(one).encode() + b"\n" for one in (*items, last))


def memory(**more: Any) -> dict[str, Any]:
    rev = {
        "rev": new_id(),
        "base": None,
        "author": None,
        "at": AT,
        "action": "remember",
        "number": 1,
    }
    trunk = [{**rev, "fields": {"content": "told", "created_at": AT}}]
    return {
        "type": "memory",
        "id": new_id(),
        "owner": "ana",
        "trunk": trunk,
        "seq": 1,
        "epoch": "e",
        **more,
    }


def memory_with(**fields: Any) -> dict[str, Any]:
    made = memory()
    made["trunk"][0]["fields"] |= fields
    return made


def test_lying_server_is_refused_and_nothing_is_taken(
    liar: Liar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER_BYTES", 2**20)
    monkeypatch.setattr("trivet.sync.exchange.MAX_STALLED", 3)
    keep_key(liar.address, "ana", "tvt.default.key")
    with Trivet.open(
        tmp_path / "laptop.db", embedder="none", background=False, key="tvt.default.key"
    ) as before:
        verbs.join(before.engine, liar.address)
    good = memory()
    lies = [
        (page(memory(), memory(trunk=[])), {}, "no history"),
        (page(memory(id="../../etc")), {}, "not a UUID"),
        (page(memory(waiting=["x"])), {}, "a conflict on an unknown revision"),
        (page({**good, "trunk": good["trunk"] * 2}), {}, "no history"),
        (
            page({**good, "trunk": [{**good["trunk"][0], "fields": {"content": 7}}]}),
            {},
            "cannot be read",
        ),
        (page({"type": "strange", "id": new_id()}), {}, "invalid sync answer"),
        (DEEP, {}, "invalid sync answer"),
        *(
            (page(memory(seq=number)), {}, "invalid sync answer")
            for number in (2**63, -1, 10**30, 1.5)
        ),
        *(
            (page(place={"epoch": "e", "seq": 1, "top": number}), {}, "invalid sync answer")
            for number in (2**63, -1, 10**400)
        ),
        (page({"type": "gone", "id": new_id(), "seq": 2**64}), {}, "invalid sync answer"),
        (
            page(memory_with(source={"uri": "a", "start_line": 2**63})),
            {},
            "number of more than 64 bits",
        ),
        (b'"' + b"x" * 2**21, {}, "longer than 1 MiB"),
        (
            gzip.compress(page(memory(trunk=[]) | {"x": "0" * 2**22})),
            {"Content-Encoding": "gzip"},
            "compressed",
        ),
        (page(memory()), {"Content-Length": "99999"}, "was lost"),  # then it closes the connection
        (page(memory())[:-9], {}, "invalid sync answer"),
        (page(more=True, place={"epoch": "e", "seq": 0, "top": 0}), {}, "make no progress"),
    ]
    with Trivet.open(tmp_path / "laptop.db", embedder="none", background=False) as laptop:
        for body, headers, reason in lies:
            liar.says = (body, headers)
            with pytest.raises(StoreError, match=reason):
                verbs.sync_now(laptop.engine)
            assert laptop.list().total == 0
        liar.says = (page(good), {})
        verbs.sync_now(laptop.engine)
        assert [one.content for one in laptop.list().memories] == ["told"]


def test_lying_laptop_is_refused_and_others_continue(tmp_path: Path) -> None:
    with served(settings_for(tmp_path / "server.db", changes="off")) as server:
        ana, eve = server.client("ana", "writer"), server.client("eve", "writer")
        ana_id = ana.done("POST", "/v1/memories", json={"content": "ana's own"})["id"]
        ana("POST", "/v1/sync/pull", json={"protocol": 1, "place": {}})
        rev = {"rev": new_id(), "base": None, "author": "ana", "at": AT, "action": "x", "number": 1}
        trunk = [{**rev, "fields": {"content": "forged", "created_at": AT}}]
        link = {"source": ana_id, "kind": "see-also", "target": ana_id}
        fields = {"content": "x", "created_at": AT}
        lies: list[dict[str, Any]] = [
            {"kind": "create", "rev": "../x", "fields": fields},
            {"kind": "create", "fields": fields},
            {"kind": "create", "rev": new_id(), "fields": fields, "at": "yesterday"},
            {"kind": "create", "rev": new_id(), "fields": {**fields, "mood": "x" * 2**16}},
            {"kind": "share"},
            {"kind": "link", "link": {**link, "created_at": "yesterday"}},
            {"kind": "heal"},
            {"kind": "heal", "bundle": memory(trunk=trunk, id=new_id(), owner="eve")},
            {"kind": "heal", "id": ana_id, "bundle": memory(trunk=trunk, id=ana_id, owner="ana")},
            {"kind": "heal", "id": ana_id, "bundle": memory(trunk=[], id=ana_id, owner="eve")},
            {"kind": "feedback", "id": ana_id, "feedback": [{"query": "q", "verdict": "useful"}]},
            {"kind": "edit", "id": ana_id, "rev": new_id(), "fields": {"content": "forged"}},
        ]
        ops = [{"op": new_id(), "id": new_id(), **lie} for lie in lies]
        acks = eve.done("POST", "/v1/sync/push", json={"protocol": 1, "place": {}, "ops": ops})[
            "acks"
        ]
        assert [ack["result"] for ack in acks] == ["refused"] * len(lies)
        assert all(ack["reason"] for ack in acks)
        for body in (DEEP, b'{"protocol": 1, "place": {}, "ops": [' + DEEP):
            eve.refused(
                400,
                "POST",
                "/v1/sync/push",
                content=body,
                headers={"Content-Type": "application/json"},
            )
        # A taken id is replaced: the owner keeps the original, and the taker learns nothing of it.
        taken = {
            "op": new_id(),
            "kind": "heal",
            "id": ana_id,
            "bundle": memory(trunk=trunk, id=ana_id, owner="eve"),
        }
        [ack] = eve.done(
            "POST", "/v1/sync/push", json={"protocol": 1, "place": {}, "ops": [taken]}
        )["acks"]
        assert ack["id"] != ana_id
        assert ana.done("GET", f"/v1/memories/{ana_id}")["content"] == "ana's own"
        assert (
            ana("POST", "/v1/sync/pull", json={"protocol": 1, "place": {}}).text.count(
                '"type":"memory"'
            )
            == 1
        )


@pytest.mark.parametrize("wrong", ["rev", "sum", "nan", "length", "spans", "long", ""])
def test_wrong_vectors_are_refused(wrong: str) -> None:
    vector = np.array([[0.6, 0.8]], "<f2")
    if wrong == "nan":
        vector[0, 0] = np.nan
    if wrong == "long":
        vector *= 2
    data, rev = (
        vector.tobytes() * (2 if wrong == "length" else 1),
        "one" if wrong != "rev" else "other",
    )
    spans = ((0, 99),) if wrong == "spans" else ((0, 4),)
    right = _sum("m", "i", rev, data) if wrong != "sum" else ""
    message = Embedded(id="i", rev=rev, spans=spans, vectors=data, sum=right)
    row = {"memory": 1, "head": "one", "revision": 1, "title": None, "content": "text"}
    model = Model(1, "m", "m", 2, True)
    if wrong:
        with pytest.raises(TrivetError, match="vector"):
            _checked(model, message, row)
    else:
        assert _checked(model, message, row)[2].shape == (1, 2)
        assert (
            PASSAGE_VERSION == 1
        )  # vectors of another passage version are not interchangeable; see the constant
