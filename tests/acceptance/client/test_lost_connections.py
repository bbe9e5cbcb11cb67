"""After a lost connection the client repeats safe calls and no write acts twice."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable

import httpx2
import pytest

from support.store_fixtures import write_and_recall_at_once
from trivet import Settings, StoreError, Trivet, TrivetError, UnknownFate
from trivet.client import responses as client_attempts
from trivet.client.call import Call
from trivet.client.responses import MAX_OUTCOME_QUERIES, MOST_ATTEMPTS, Attempts

from .tcp_proxy import TcpProxy


@pytest.fixture
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the pause between attempts."""
    monkeypatch.setattr(client_attempts, "FIRST_PAUSE", 0.0)


def test_one_connection_serves_many_calls(trivet: Trivet, network: TcpProxy) -> None:
    for number in range(5):
        trivet.remember(f"zebra number {number}")
        trivet.recall("zebra")
    assert network.connections == 1


def test_threads_share_a_client(trivet: Trivet, network: TcpProxy) -> None:
    write_and_recall_at_once(trivet, threads=6, turns=5)
    assert network.connections <= 6


READS: dict[str, Callable[[Trivet, str], object]] = {
    "recall": lambda trivet, id: trivet.recall("zebra").hits[0].id,
    "get": lambda trivet, id: trivet.get(id),
    "list": lambda trivet, id: trivet.list(),
    "history": lambda trivet, id: trivet.history(id),
    "diff": lambda trivet, id: trivet.diff(id, 1, 1),
    "why_not": lambda trivet, id: trivet.why_not("zebra", id).verdict,
    "stats": lambda trivet, id: trivet.stats().memories,
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("lost", ["lose_requests", "lose_answers"])
def test_read_is_repeated(
    trivet: Trivet, network: TcpProxy, read: Callable[[Trivet, str], object], lost: str
) -> None:
    id = trivet.remember("zebra text").id
    expected = read(trivet, id)
    setattr(network, lost, 1)
    assert read(trivet, id) == expected
    assert getattr(network, lost) == 0


def test_remember_with_a_lost_answer_stores_once(trivet: Trivet, network: TcpProxy) -> None:
    network.lose_answers = 2
    stored = trivet.remember("zebra text")
    assert [memory.id for memory in trivet.list().memories] == [stored.id]
    assert trivet.stats().revisions == 1
    first, *others = network.headers("idempotency-key")[:3]
    assert first
    assert others == [first, first]


def test_remember_many_with_a_lost_answer_stores_once(trivet: Trivet, network: TcpProxy) -> None:
    network.lose_answers = 1
    stored = trivet.remember_many([{"content": "zebra one"}, {"content": "zebra two"}])
    assert {memory.id for memory in trivet.list().memories} == {one.id for one in stored}
    assert trivet.list().total == 2


def test_remember_many_accepts_an_empty_list(trivet: Trivet) -> None:
    assert trivet.remember_many([]) == []


def test_edit_with_a_lost_answer_is_one_revision(trivet: Trivet, network: TcpProxy) -> None:
    id = trivet.remember("zebra text").id
    network.lose_answers = 1
    assert trivet.edit(id, content="horse text", if_revision=1).revision == 2
    assert len(trivet.history(id)) == 2


def test_restore_with_a_lost_answer_is_no_conflict(trivet: Trivet, network: TcpProxy) -> None:
    id = trivet.remember("zebra text").id
    trivet.forget(id)
    network.lose_answers = 1
    assert trivet.restore(id).state == "active"
    assert [one.action for one in trivet.history(id)] == ["remember", "forget", "restore"]


@pytest.mark.parametrize("verb", ["purge", "unlink"])
def test_repeated_delete_of_a_missing_thing_is_no_error(
    trivet: Trivet, network: TcpProxy, verb: str
) -> None:
    id, other = trivet.remember("zebra text").id, trivet.remember("horse text").id
    trivet.link(id, "see-also", other)
    network.lose_answers = 1
    if verb == "purge":
        trivet.purge(id)
    else:
        trivet.unlink(id, "see-also", other)
    assert trivet.links(other) == ()


def test_each_call_has_its_own_key(trivet: Trivet, network: TcpProxy) -> None:
    """Storing the same text twice on purpose makes two memories."""
    first, second = trivet.remember("zebra text"), trivet.remember("zebra text")
    assert first.id != second.id
    assert trivet.list().total == 2
    assert len(set(network.headers("idempotency-key")[:2])) == 2


def test_reveal_is_not_repeated(trivet: Trivet, network: TcpProxy) -> None:
    """Each reveal is recorded, and the server must not keep the answer for a replay."""
    id = trivet.remember("zebra text").id
    network.lose_answers = 1
    with pytest.raises(StoreError, match="was lost"):
        trivet.reveal(id)
    assert network.headers("idempotency-key")[-1] == ""
    assert [entry.act for entry in trivet.audit()].count("reveal") == 1


@pytest.mark.usefixtures("_no_pause")
def test_outcome_of_a_write_is_asked_for_longer(trivet: Trivet, network: TcpProxy) -> None:
    id = trivet.remember("zebra text").id
    network.lose_answers = MAX_OUTCOME_QUERIES - 1
    assert trivet.edit(id, content="horse text", if_revision=1).revision == 2
    assert len(trivet.history(id)) == 2


@pytest.mark.usefixtures("_no_pause")
def test_client_gives_up_and_reports_the_unknown_outcome(trivet: Trivet, network: TcpProxy) -> None:
    id = trivet.remember("zebra text").id
    network.lose_answers = MAX_OUTCOME_QUERIES + MOST_ATTEMPTS
    before = len(network.requests)
    with pytest.raises(UnknownFate, match=r"was lost.*not known whether") as caught:
        trivet.forget(id)
    assert network.address in str(caught.value)
    assert len(network.requests) == before + MAX_OUTCOME_QUERIES
    with pytest.raises(StoreError, match="was lost") as of_a_read:
        trivet.recall("zebra")
    assert "not known" not in str(of_a_read.value)
    assert trivet.get(id).state == "deleted", "the next call works again"


LOST = httpx2.ReadError("reset")
AWAY = httpx2.ConnectError("refused")


def outcome_of(call: Call, *met: httpx2.RequestError | int) -> str:
    """Return what the caller gets when its attempts meet these losses, the last one repeatedly."""
    attempts = Attempts(call, "http://server")
    settings = Settings(path="http://server")
    for one in (*met, *met[-1:] * MAX_OUTCOME_QUERIES):
        try:
            if isinstance(one, httpx2.RequestError):
                attempts.after_connection_error(one)
            elif attempts.after_response(one, {}) is None:
                attempts.checked_body(
                    httpx2.Response(one, request=httpx2.Request("POST", "http://server")), settings
                )
                return "done"
        except StoreError as error:
            return f"{type(error).__name__}: {error}"
        except TrivetError as error:
            return type(error).__name__
    raise AssertionError("it never ends")


@pytest.mark.parametrize(
    ("met", "outcome"),
    [
        ((LOST, AWAY), "UnknownFate: .*cannot be reached.*not known whether.*has the id 0199"),
        ((AWAY, LOST, AWAY), "UnknownFate"),
        ((LOST, 429), "UnknownFate"),
        ((LOST, 503), "UnknownFate"),
        ((LOST, 401), "UnknownFate"),
        ((502, AWAY), "UnknownFate"),
        ((504, AWAY), "UnknownFate"),
        ((LOST, AWAY, 200), "done"),
        ((LOST, AWAY, 409), "UnknownFate"),
        ((LOST, 422), "InvalidInput"),
        ((AWAY,), "StoreError: .*cannot be reached"),
        ((429,), "TooMany"),
        ((503,), "StoreError"),
    ],
)
def test_unknown_outcome_stays_unknown_through_all_attempts(
    met: tuple[httpx2.RequestError | int, ...], outcome: str
) -> None:
    call = Call(method="POST", path="/v1/memories", writes=True, once="key", id="0199")
    assert re.match(outcome, outcome_of(call, *met))


def test_no_server_at_the_address(key: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (
        Trivet.open(f"http://127.0.0.1:{port}", key=key) as trivet,
        pytest.raises(StoreError, match=r"cannot be reached.*Check that it runs") as caught,
    ):
        trivet.remember("text")
    assert key not in str(caught.value)
    assert "not known" not in str(caught.value), "it was never sent"


def test_silent_server_times_out(key: str) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        Trivet.open(
            f"http://127.0.0.1:{silent.getsockname()[1]}", key=key, answer_time_limit_ms=50
        ) as trivet,
        pytest.raises(StoreError, match=r"in time.*answer_time_limit_ms.*not known"),
    ):
        trivet.remember("text")


def test_closed_client_says_so(trivet: Trivet) -> None:
    trivet.close()
    with pytest.raises(StoreError, match="closed"):
        trivet.list()
    with pytest.raises(StoreError, match="closed"):
        trivet.export()
    trivet.close()


def test_import_is_sent_once(trivet: Trivet, network: TcpProxy) -> None:
    network.lose_answers = 1
    with pytest.raises(StoreError, match="Import again"):
        trivet.import_(['{"content": "zebra text"}'])
    assert trivet.import_(['{"content": "zebra text"}']).unchanged == 1


def test_cut_off_export_is_reported(trivet: Trivet, network: TcpProxy) -> None:
    trivet.remember("zebra text")
    lines = trivet.export()
    network.lose_answers = 1
    with pytest.raises(StoreError, match="incomplete"):
        list(lines)


def test_export_without_a_last_line_is_reported(
    trivet: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy may end the answer properly when its server is gone."""
    trivet.remember("zebra text")
    whole = list(trivet.export())
    monkeypatch.setattr(
        "trivet.memory.admin.export.export_lines", lambda engine, sensitive: iter(whole[:-1])
    )
    with pytest.raises(StoreError, match="incomplete"):
        list(trivet.export())
    before = whole[0].replace('"trivet_export":2', '"trivet_export":1')
    monkeypatch.setattr(
        "trivet.memory.admin.export.export_lines",
        lambda engine, sensitive: iter([before, *whole[1:-1]]),
    )
    assert list(trivet.export())[1:] == whole[1:-1], "an older server sends no last line"
