"""A repeated Idempotency-Key acts once, across restarts, processes and both stores."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.http_server import Client, Served, served, settings_for
from support.waiting import result_of, taken
from trivet import Trivet
from trivet.contract import Remember
from trivet.errors import StoreError
from trivet.serve.http.endpoints.endpoint import IdempotentRequest, Reply


def keyed(key: str) -> dict[str, Any]:
    return {"headers": {"Idempotency-Key": key}}


def replayed(answer: httpx2.Response) -> bool:
    return answer.headers.get("idempotent-replayed") == "true"


def total(ana: Client) -> int:
    return int(ana.done("GET", "/v1/memories")["total"])


def test_same_request_acts_once(ana: Client) -> None:
    before = total(ana)
    first, again = (
        ana("POST", "/v1/memories", json={"content": "Buoy 7 is lit."}, **keyed("a-1"))
        for _ in range(2)
    )
    assert (first.status_code, again.status_code) == (201, 201)
    assert (replayed(first), replayed(again)) == (False, True)
    assert first.content == again.content
    assert total(ana) == before + 1


def test_without_a_key_each_request_acts(ana: Client) -> None:
    before = total(ana)
    for _ in range(2):
        ana.done("POST", "/v1/memories", json={"content": "Buoy 8 is dark."})
    assert total(ana) == before + 2


@pytest.mark.parametrize(
    "other", [{"content": "Another."}, {"content": "Buoy 9 is red.", "tags": ["x"]}]
)
def test_same_key_with_another_body_is_refused(ana: Client, other: dict[str, Any]) -> None:
    ana("POST", "/v1/memories", json={"content": "Buoy 9 is red."}, **keyed("b-1"))
    before = total(ana)
    message = ana.refused(422, "POST", "/v1/memories", json=other, **keyed("b-1"))
    assert "was used with another request" in message
    assert total(ana) == before


def test_same_key_at_another_address_is_refused(ana: Client) -> None:
    ids = [
        ana.done("POST", "/v1/memories", json={"content": f"Rope {number}."})["id"]
        for number in range(2)
    ]
    ana.done("PATCH", f"/v1/memories/{ids[0]}", json={"importance": 1}, **keyed("c-1"))
    ana.refused(422, "PATCH", f"/v1/memories/{ids[1]}", json={"importance": 1}, **keyed("c-1"))
    assert ana.done("GET", f"/v1/memories/{ids[1]}")["importance"] == 0.5


def test_keys_of_two_callers_are_independent(server: Served, ana: Client) -> None:
    other = server.client("ben")
    first = ana("POST", "/v1/memories", json={"content": "Mine."}, **keyed("d-1"))
    second = other("POST", "/v1/memories", json={"content": "Also mine."}, **keyed("d-1"))
    assert (second.status_code, replayed(second)) == (201, False)
    assert first.json()["id"] != second.json()["id"]


def test_every_write_takes_a_key(ana: Client) -> None:
    id = ana.done("POST", "/v1/memories", json={"content": "Anchor."})["id"]
    path = f"/v1/memories/{id}"
    writes: list[tuple[str, str, Any]] = [
        ("POST", "/v1/memories/batch", {"memories": [{"content": "One."}, {"content": "Two."}]}),
        ("PATCH", path, {"content": "Anchor, heavy."}),
        ("POST", "/v1/shares", {"user": "ben", "id": id}),
        ("POST", f"{path}/restore", {"revision": 1}),
        ("POST", f"{path}/purge", None),
    ]
    for number, (method, address, body) in enumerate(writes):
        given = {"json": body} if body is not None else {}
        answers = [ana(method, address, **given, **keyed(f"e-{number}")) for _ in range(2)]
        assert answers[0].is_success, answers[0].text
        assert [replayed(answer) for answer in answers] == [False, True]
        assert (answers[0].content, answers[0].status_code) == (
            answers[1].content,
            answers[1].status_code,
        )
        assert answers[0].headers.get("etag") == answers[1].headers.get("etag")


def test_refused_request_can_be_repeated_with_the_same_key(ana: Client) -> None:
    ana.refused(422, "POST", "/v1/memories", json={"content": ""}, **keyed("f-1"))
    assert (
        ana("POST", "/v1/memories", json={"content": "Mended."}, **keyed("f-1")).status_code == 201
    )


@pytest.mark.parametrize("key", ["", "two words", "x" * 201, "ümlaut"])
def test_invalid_key(ana: Client, key: str) -> None:
    header = {"Idempotency-Key": key.encode()}
    assert "Idempotency-Key" in ana.refused(
        400, "POST", "/v1/memories", json={"content": "x"}, headers=header
    )


def test_revealed_secrets_are_never_kept(ana: Client) -> None:
    secret = "ghp_" + "z9Y8x7W6v5U4t3S2r1Q0p9O8n7M6l5K4j3I2"
    id = ana.done("POST", "/v1/memories", json={"content": f"Token {secret}."}, **keyed("g-1"))[
        "id"
    ]
    answers = [ana("POST", f"/v1/memories/{id}/reveal", **keyed("g-2")) for _ in range(2)]
    assert all(secret in answer.text for answer in answers)
    assert not any(replayed(answer) for answer in answers)


class Hold:
    """Stop a remember halfway until the test releases it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)
        whole = Trivet.perform

        def perform(memory: Trivet, request: Any) -> Any:
            if isinstance(request, Remember):
                self.entered.release()
                taken(self.gate)
            return whole(memory, request)

        monkeypatch.setattr(Trivet, "perform", perform)


def test_concurrent_repeats_act_once(ana: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    hold, before = Hold(monkeypatch), total(ana)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(
            ana, "POST", "/v1/memories", json={"content": "Twins."}, **keyed("h-1")
        )
        taken(hold.entered)
        second = ana("POST", "/v1/memories", json={"content": "Twins."}, **keyed("h-1"))
        hold.gate.release()
        assert result_of(first).status_code == 201
    assert second.status_code == 409
    assert second.headers["retry-after"] == "1"
    assert "still running" in second.json()["detail"]
    assert replayed(ana("POST", "/v1/memories", json={"content": "Twins."}, **keyed("h-1")))
    assert total(ana) == before + 1


def test_timed_out_request_finishes_and_its_answer_is_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(settings_for(path, server_request_seconds=0.2)) as server:
        ana, hold = server.client(), Hold(monkeypatch)
        late = ana("POST", "/v1/memories", json={"content": "Slow."}, **keyed("i-1"))
        assert (late.status_code, late.json()["type"]) == (504, "urn:trivet:problem:took-too-long")
        assert "The server will finish it" in late.json()["detail"]
        hold.gate.release()
        while (
            answer := ana("POST", "/v1/memories", json={"content": "Slow."}, **keyed("i-1"))
        ).status_code == 409:
            pass
        assert (answer.status_code, replayed(answer)) == (201, True)
        assert total(ana) == 1


def test_key_outlives_a_restart(path: Path) -> None:
    settings = settings_for(path)
    with served(settings) as server:
        key = server.key()
        first = server.with_key(key)(
            "POST", "/v1/memories", json={"content": "Before."}, **keyed("j-1")
        )
    with served(settings) as server:
        again = server.with_key(key)(
            "POST", "/v1/memories", json={"content": "Before."}, **keyed("j-1")
        )
        assert (again.content, replayed(again)) == (first.content, True)


@pytest.fixture
def two_processes(path: Path) -> Iterator[tuple[Client, Client]]:
    """Two servers on one store, each with a client of the same key."""
    settings = settings_for(path)
    with served(settings) as one, served(settings) as other:
        key = one.key()
        yield one.with_key(key), other.with_key(key)


def test_two_servers_on_one_store_act_once(two_processes: tuple[Client, Client]) -> None:
    def send(number: int) -> httpx2.Response:
        return two_processes[number % 2](
            "POST", "/v1/memories", json={"content": "Race."}, **keyed("k-1")
        )

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(send, range(16)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert sum(answer.status_code == 201 and not replayed(answer) for answer in answers) == 1
    assert total(two_processes[1]) == 1


def test_retry_after_a_crash_stores_one_memory(
    ana: Client, server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first server stored the memory and died before it could answer."""
    before = total(ana)
    store = server.house._first_tenant().engine.store
    with monkeypatch.context() as dying:
        dying.setattr(type(store.idempotency), "finish", _crash)
        first = ana("POST", "/v1/memories", json={"content": "Orphan."}, **keyed("l-1"))
    assert first.status_code == 201
    assert (
        ana("POST", "/v1/memories", json={"content": "Orphan."}, **keyed("l-1")).status_code == 409
    )
    with store._database.write() as connection:
        connection.execute("UPDATE once SET taken_at = taken_at - 100 WHERE answer IS NULL")
    second = ana("POST", "/v1/memories", json={"content": "Orphan."}, **keyed("l-1"))
    assert (second.json()["id"], second.json()["status"]) == (first.json()["id"], "unchanged")
    assert total(ana) == before + 1


def _crash(*_: object) -> None:
    raise StoreError("gone")


def test_kept_answers_reveal_nothing_in_the_file(path: Path) -> None:
    with served(settings_for(path)) as server:
        ana = server.client()
        ana.done(
            "POST", "/v1/memories", json={"content": "The moored heron."}, **keyed("legible-key")
        )
        id = ana.done(
            "POST", "/v1/memories", json={"content": "The moored heron."}, **keyed("m-2")
        )["id"]
        for memory in ana.done("GET", "/v1/memories")["memories"]:
            ana("POST", f"/v1/memories/{memory['id']}/purge")
        with closing(sqlite3.connect(path)) as connection:
            rows = [
                b"".join(row)
                for row in connection.execute("SELECT name, request, answer FROM once")
            ]
        assert len(rows) == 2
    stored = b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))
    assert not [word for word in (b"heron", b"legible-key", id.encode()) if word in b"".join(rows)]
    assert b"moored heron" not in stored


def test_id_depends_on_caller_key_and_request() -> None:
    def request(secret: bytes = b"s", key: str = "k", body: bytes = b"a") -> IdempotentRequest:
        return IdempotentRequest(secret, key, body)

    assert request().name == request(body=b"b").name
    assert request().request != request(body=b"b").request
    assert len({request().name, request(secret=b"t").name, request(key="l").name}) == 3
    assert request().id() == request().id() != request().id(1)
    reply = Reply(status=201, body=b"body", etag='"1"')
    assert request().opened(request().sealed(reply)) == reply
    with pytest.raises(StoreError, match="damaged"):
        request(key="l").opened(request().sealed(reply))
