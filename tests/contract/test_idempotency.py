"""Of concurrent requests with one key exactly one runs, and the others get its stored answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from support.stores import Open, add, memory
from trivet.store.records import StoredAnswer
from trivet.store.relational.store import RelationalStore as Store
from trivet.store.relational.tables import ledgers as idempotency

LEASE = 60.0


def test_first_request_runs_and_others_wait(store: Store) -> None:
    assert store.idempotency.begin(b"name", b"request", LEASE) is None
    assert store.idempotency.begin(b"name", b"request", LEASE) == StoredAnswer(request=b"request")
    assert store.idempotency.begin(b"other name", b"request", LEASE) is None


def test_answer_is_kept_across_processes(open_store: Open) -> None:
    one, other = open_store(), open_store()
    one.idempotency.begin(b"name", b"request", LEASE)
    one.idempotency.finish(b"name", b"answer")
    assert other.idempotency.begin(b"name", b"request", LEASE) == StoredAnswer(
        request=b"request", answer=b"answer"
    )
    assert other.idempotency.begin(b"name", b"another request", LEASE) == StoredAnswer(
        request=b"request", answer=b"answer"
    )


def test_abandoned_request_can_be_retried(store: Store) -> None:
    store.idempotency.begin(b"name", b"request", LEASE)
    store.idempotency.give_up(b"name")
    assert store.idempotency.begin(b"name", b"another request", LEASE) is None


def test_answered_request_cannot_be_abandoned(store: Store) -> None:
    store.idempotency.begin(b"name", b"request", LEASE)
    store.idempotency.finish(b"name", b"answer")
    store.idempotency.give_up(b"name")
    assert store.idempotency.begin(b"name", b"request", LEASE) == StoredAnswer(
        request=b"request", answer=b"answer"
    )


def test_expired_lease_is_taken_over_once(store: Store) -> None:
    store.idempotency.begin(b"name", b"request", LEASE)
    expired = -1.0  # a lease that has already expired
    assert store.idempotency.begin(b"name", b"another request", expired) == StoredAnswer(
        request=b"request"
    )
    assert store.idempotency.begin(b"name", b"request", expired) is None
    assert store.idempotency.begin(b"name", b"request", LEASE) == StoredAnswer(request=b"request")


def test_one_of_many_concurrent_requests_runs(open_store: Open) -> None:
    stores = [open_store(), open_store()]
    with ThreadPoolExecutor(8) as threads:
        asked = [stores[number % 2].idempotency for number in range(24)]
        begun = list(threads.map(lambda one: one.begin(b"name", b"request", LEASE), asked))
    assert begun.count(None) == 1


def test_answer_is_committed_with_the_write(open_store: Open) -> None:
    store, other = open_store(), open_store()
    one = memory("relay")

    def fail() -> bytes:
        add(store, one)
        raise KeyError("in the middle")

    with pytest.raises(KeyError):
        store.idempotency.act(b"name", b"request", fail)
    assert other.memories.get_many([one.id]) == {}
    assert store.idempotency.act(
        b"name", b"request", lambda: str(len(add(store, one))).encode()
    ).acted
    again = other.idempotency.act(b"name", b"request", fail)
    assert again == StoredAnswer(request=b"request", answer=b"1")
    assert other.memories.get(one.id) == one


def test_answers_expire_after_a_day(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.idempotency.begin(b"old", b"request", LEASE)
    store.idempotency.finish(b"old", b"answer")
    with monkeypatch.context() as a_day_later:
        a_day_later.setattr(idempotency, "KEPT_SECONDS", -1.0)
        store.idempotency.begin(b"new", b"request", LEASE)
    assert store.idempotency.begin(b"old", b"another request", LEASE) is None


def test_keys_of_tenants_and_users_do_not_collide(open_store: Open) -> None:
    """A user's view of the store shares the record.

    Names are digests that include the user's key.
    """
    store = open_store()
    assert store.seen_by("ana").idempotency.begin(b"name", b"request", LEASE) is None
    assert store.idempotency.begin(b"name", b"request", LEASE) == StoredAnswer(request=b"request")


def test_request_begun_under_a_fast_clock_is_taken_over(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as ahead:
        ahead.setattr("time.time", lambda: 4e9)
        assert store.idempotency.begin(b"name", b"request", LEASE) is None
    assert store.idempotency.begin(b"name", b"request", LEASE) is None
    assert store.idempotency.begin(b"name", b"request", LEASE) == StoredAnswer(request=b"request")
