"""Connections are kept, and break: what is safe is done again, nothing is done twice, and what is not known is said."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable

import httpx2
import pytest

from support.opened import write_and_recall_at_once
from trivet import Settings, StoreError, Trivet, TrivetError, UnknownFate
from trivet.client import responses as client_attempts
from trivet.client.call import Call
from trivet.client.responses import MAX_OUTCOME_QUERIES, MOST_ATTEMPTS, Attempts

from .between import Wire


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause between attempts."""
    monkeypatch.setattr(client_attempts, "FIRST_PAUSE", 0.0)


def test_one_connection_serves_many_calls(trivet: Trivet, between: Wire) -> None:
    for number in range(5):
        trivet.remember(f"zebra number {number}")
        trivet.recall("zebra")
    assert between.connections == 1


def test_threads_share_a_client(trivet: Trivet, between: Wire) -> None:
    write_and_recall_at_once(trivet, threads=6, turns=5)
    assert between.connections <= 6


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
def test_a_read_is_asked_again(
    trivet: Trivet, between: Wire, read: Callable[[Trivet, str], object], lost: str
) -> None:
    id = trivet.remember("zebra text").id
    expected = read(trivet, id)
    setattr(between, lost, 1)
    assert read(trivet, id) == expected
    assert getattr(between, lost) == 0


def test_a_memory_whose_answer_was_lost_is_stored_once(trivet: Trivet, between: Wire) -> None:
    between.lose_answers = 2
    stored = trivet.remember("zebra text")
    assert [memory.id for memory in trivet.list().memories] == [stored.id]
    assert trivet.stats().revisions == 1
    first, *others = between.headers("idempotency-key")[:3]
    assert first
    assert others == [first, first]


def test_many_whose_answer_was_lost_are_stored_once(trivet: Trivet, between: Wire) -> None:
    between.lose_answers = 1
    stored = trivet.remember_many([{"content": "zebra one"}, {"content": "zebra two"}])
    assert {memory.id for memory in trivet.list().memories} == {one.id for one in stored}
    assert trivet.list().total == 2


def test_none_at_all_are_stored_as_well(trivet: Trivet) -> None:
    assert trivet.remember_many([]) == []


def test_an_edit_whose_answer_was_lost_is_one_revision(trivet: Trivet, between: Wire) -> None:
    id = trivet.remember("zebra text").id
    between.lose_answers = 1
    assert trivet.edit(id, content="horse text", if_revision=1).revision == 2
    assert len(trivet.history(id)) == 2


def test_a_restore_whose_answer_was_lost_is_no_conflict(trivet: Trivet, between: Wire) -> None:
    id = trivet.remember("zebra text").id
    trivet.forget(id)
    between.lose_answers = 1
    assert trivet.restore(id).state == "active"
    assert [one.action for one in trivet.history(id)] == ["remember", "forget", "restore"]


@pytest.mark.parametrize("verb", ["purge", "unlink"])
def test_what_is_gone_already_is_no_error_when_the_answer_was_lost(
    trivet: Trivet, between: Wire, verb: str
) -> None:
    id, other = trivet.remember("zebra text").id, trivet.remember("horse text").id
    trivet.link(id, "see-also", other)
    between.lose_answers = 1
    if verb == "purge":
        trivet.purge(id)
    else:
        trivet.unlink(id, "see-also", other)
    assert trivet.links(other) == ()


def test_each_call_has_a_key_of_its_own(trivet: Trivet, between: Wire) -> None:
    """Two memories with the same text are two memories if the caller says so twice."""
    first, second = trivet.remember("zebra text"), trivet.remember("zebra text")
    assert first.id != second.id
    assert trivet.list().total == 2
    assert len(set(between.headers("idempotency-key")[:2])) == 2


def test_reading_a_secret_is_not_repeated_behind_ones_back(trivet: Trivet, between: Wire) -> None:
    """Each time is on the record, and the server must not keep the answer in order to repeat it."""
    id = trivet.remember("zebra text").id
    between.lose_answers = 1
    with pytest.raises(StoreError, match="broke off"):
        trivet.reveal(id)
    assert between.headers("idempotency-key")[-1] == ""
    assert [entry.act for entry in trivet.audit()].count("reveal") == 1


@pytest.mark.usefixtures("_at_once")
def test_it_asks_for_longer_what_became_of_a_write(trivet: Trivet, between: Wire) -> None:
    id = trivet.remember("zebra text").id
    between.lose_answers = MAX_OUTCOME_QUERIES - 1
    assert trivet.edit(id, content="horse text", if_revision=1).revision == 2
    assert len(trivet.history(id)) == 2


@pytest.mark.usefixtures("_at_once")
def test_it_gives_up_and_says_what_is_not_known(trivet: Trivet, between: Wire) -> None:
    id = trivet.remember("zebra text").id
    between.lose_answers = MAX_OUTCOME_QUERIES + MOST_ATTEMPTS
    before = len(between.requests)
    with pytest.raises(UnknownFate, match=r"broke off.*not known whether") as caught:
        trivet.forget(id)
    assert between.address in str(caught.value)
    assert len(between.requests) == before + MAX_OUTCOME_QUERIES
    with pytest.raises(StoreError, match="broke off") as of_a_read:
        trivet.recall("zebra")
    assert "not known" not in str(of_a_read.value)
    assert trivet.get(id).state == "deleted", "and it works again by itself"


LOST = httpx2.ReadError("reset")
AWAY = httpx2.ConnectError("refused")


def tried(call: Call, *met: httpx2.RequestError | int) -> str:
    """What a caller hears whose attempts meet these losses and answers, the last one again and again."""
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
    ("met", "heard"),
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
def test_what_is_not_known_stays_so_through_all_attempts(
    met: tuple[httpx2.RequestError | int, ...], heard: str
) -> None:
    call = Call(method="POST", path="/v1/memories", writes=True, once="key", id="0199")
    assert re.match(heard, tried(call, *met))


def test_nobody_there(key: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (
        Trivet.open(f"http://127.0.0.1:{port}", key=key) as trivet,
        pytest.raises(StoreError, match=r"cannot be reached.*Is it running") as caught,
    ):
        trivet.remember("text")
    assert key not in str(caught.value)
    assert "not known" not in str(caught.value), "it was never sent"


def test_a_silent_server_is_not_waited_for(key: str) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        Trivet.open(
            f"http://127.0.0.1:{silent.getsockname()[1]}", key=key, answer_time_limit_ms=50
        ) as trivet,
        pytest.raises(StoreError, match=r"in time.*answer_time_limit_ms.*not known"),
    ):
        trivet.remember("text")


def test_a_closed_client_says_so(trivet: Trivet) -> None:
    trivet.close()
    with pytest.raises(StoreError, match="closed"):
        trivet.list()
    with pytest.raises(StoreError, match="closed"):
        trivet.export()
    trivet.close()


def test_an_import_is_sent_once(trivet: Trivet, between: Wire) -> None:
    between.lose_answers = 1
    with pytest.raises(StoreError, match="import it again"):
        trivet.import_(['{"content": "zebra text"}'])
    assert trivet.import_(['{"content": "zebra text"}']).unchanged == 1


def test_an_export_that_breaks_off_says_so(trivet: Trivet, between: Wire) -> None:
    trivet.remember("zebra text")
    lines = trivet.export()
    between.lose_answers = 1
    with pytest.raises(StoreError, match="not whole"):
        list(lines)


def test_an_export_that_is_ended_early_as_if_it_were_whole_says_so(
    trivet: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a proxy does it whose server has gone away."""
    trivet.remember("zebra text")
    whole = list(trivet.export())
    monkeypatch.setattr(
        "trivet.memory.admin.export.export_lines", lambda engine, sensitive: iter(whole[:-1])
    )
    with pytest.raises(StoreError, match="not whole"):
        list(trivet.export())
    before = whole[0].replace('"trivet_export":2', '"trivet_export":1')
    monkeypatch.setattr(
        "trivet.memory.admin.export.export_lines",
        lambda engine, sensitive: iter([before, *whole[1:-1]]),
    )
    assert list(trivet.export())[1:] == whole[1:-1], "an older server has no last line"
