"""A request that must act once: one begins it, however many ask, and its answer is kept for the others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from support.stores import Open, add, memory
from trivet.store.records import StoredAnswer
from trivet.store.relational.store import RelationalStore as Store
from trivet.store.relational.tables import ledgers as idempotency

LEASE = 60.0


def test_the_first_acts_and_the_others_wait(store: Store) -> None:
    assert store.idempotency.begin(b"name", b"request", LEASE) is None
    assert store.idempotency.begin(b"name", b"request", LEASE) == StoredAnswer(request=b"request")
    assert store.idempotency.begin(b"other name", b"request", LEASE) is None


def test_the_answer_is_kept_across_processes(open_store: Open) -> None:
    one, other = open_store(), open_store()
    one.idempotency.begin(b"name", b"request", LEASE)
    one.idempotency.finish(b"name", b"answer")
    assert other.idempotency.begin(b"name", b"request", LEASE) == StoredAnswer(
        request=b"request", answer=b"answer"
    )
    assert other.idempotency.begin(b"name", b"another request", LEASE) == StoredAnswer(
        request=b"request", answer=b"answer"
    )


def test_what_was_given_up_can_be_tried_again(store: Store) -> None:
    store.idempotency.begin(b"name", b"request", LEASE)
    store.idempotency.give_up(b"name")
    assert store.idempotency.begin(b"name", b"another request", LEASE) is None


def test_an_answer_is_not_given_up(store: Store) -> None:
    store.idempotency.begin(b"name", b"request", LEASE)
    store.idempotency.finish(b"name", b"answer")
    store.idempotency.give_up(b"name")
    assert store.idempotency.begin(b"name", b"request", LEASE) == StoredAnswer(
        request=b"request", answer=b"answer"
    )


def test_after_the_lease_the_same_request_is_taken_over_once(store: Store) -> None:
    store.idempotency.begin(b"name", b"request", LEASE)
    over = -1.0  # a lease that ended before it began
    assert store.idempotency.begin(b"name", b"another request", over) == StoredAnswer(
        request=b"request"
    )
    assert store.idempotency.begin(b"name", b"request", over) is None
    assert store.idempotency.begin(b"name", b"request", LEASE) == StoredAnswer(request=b"request")


def test_of_many_at_once_one_begins(open_store: Open) -> None:
    stores = [open_store(), open_store()]
    with ThreadPoolExecutor(8) as threads:
        asked = [stores[number % 2].idempotency for number in range(24)]
        begun = list(threads.map(lambda one: one.begin(b"name", b"request", LEASE), asked))
    assert begun.count(None) == 1


def test_the_answer_is_written_with_what_the_act_wrote(open_store: Open) -> None:
    store, other = open_store(), open_store()
    one = memory("relay")

    def dies() -> bytes:
        add(store, one)
        raise KeyError("in the middle")

    with pytest.raises(KeyError):
        store.idempotency.act(b"name", b"request", dies)
    assert other.memories.get_many([one.id]) == {}
    assert store.idempotency.act(
        b"name", b"request", lambda: str(len(add(store, one))).encode()
    ).acted
    again = other.idempotency.act(b"name", b"request", dies)
    assert again == StoredAnswer(request=b"request", answer=b"1")
    assert other.memories.get(one.id) == one


def test_what_is_a_day_old_is_forgotten(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.idempotency.begin(b"old", b"request", LEASE)
    store.idempotency.finish(b"old", b"answer")
    with monkeypatch.context() as a_day_later:
        a_day_later.setattr(idempotency, "KEPT_SECONDS", -1.0)
        store.idempotency.begin(b"new", b"request", LEASE)
    assert store.idempotency.begin(b"old", b"another request", LEASE) is None


def test_tenants_of_a_server_and_users_of_a_tenant(open_store: Open) -> None:
    """A user's view of the store has the same record, since names are digests of each one's own key."""
    store = open_store()
    assert store.seen_by("ana").idempotency.begin(b"name", b"request", LEASE) is None
    assert store.idempotency.begin(b"name", b"request", LEASE) == StoredAnswer(request=b"request")


def test_a_request_begun_under_a_clock_that_was_ahead_is_taken_over(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as ahead:
        ahead.setattr("time.time", lambda: 4e9)
        assert store.idempotency.begin(b"name", b"request", LEASE) is None
    assert store.idempotency.begin(b"name", b"request", LEASE) is None
    assert store.idempotency.begin(b"name", b"request", LEASE) == StoredAnswer(request=b"request")
