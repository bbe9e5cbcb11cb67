"""Each job is leased to one worker at a time, never lost, and never stores outdated vectors."""

from __future__ import annotations

import msgspec
import pytest

from support.stores import Open, add, memory, near, replace, unit, whole
from trivet.memory.worker.embed_pending import (
    HOSTED_LEASE_SECONDS,
    LOCAL_LEASE_SECONDS,
    MAX_RETRY_SECONDS,
)
from trivet.store.records import Backlog, EmbeddingJob, Model
from trivet.store.relational.index.embedding_queue import EMPTY_BACKLOG, LONGEST_WAIT_SECONDS
from trivet.store.relational.store import RelationalStore as Store


@pytest.fixture
def model(store: Store) -> Model:
    return store.vectors.adopt("tiny", "a", 2)


def finish(store: Store, *jobs: EmbeddingJob) -> None:
    store.jobs.finish([(job, whole(job), unit(1, 0)[None, :]) for job in jobs])


def test_write_queues_a_job_with_all_the_worker_needs(store: Store, model: Model) -> None:
    add(store, memory("relay", title="About the relay"))
    assert store.jobs.seconds_until_due(model) == 0
    (job,) = store.jobs.lease(model, 10, 60)
    assert (job.content, job.title, job.revision, job.attempts) == (
        "relay",
        "About the relay",
        1,
        0,
    )


def test_leased_job_is_not_leased_again(open_store: Open) -> None:
    ours, theirs = open_store(), open_store()
    model = ours.vectors.adopt("tiny", "a", 2)
    add(ours, memory("one"), memory("two"), memory("three"))
    first = ours.jobs.lease(model, 2, 60)
    second = theirs.jobs.lease(model, 2, 60)
    assert len(first) == 2
    assert len(second) == 1
    assert not {job.key for job in first} & {job.key for job in second}
    assert ours.jobs.lease(model, 2, 60) == ()
    assert (ours.jobs.seconds_until_due(model) or 0) > 0
    assert ours.jobs.backlog(model).waiting == 3


def test_expired_lease_is_due_again(store: Store, model: Model) -> None:
    add(store, memory("relay"))
    assert len(store.jobs.lease(model, 10, 0)) == 1
    assert len(store.jobs.lease(model, 10, 60)) == 1
    assert len(store.jobs.lease(model, 10, 60)) == 0
    store.jobs.retry_now()
    assert len(store.jobs.lease(model, 10, 60)) == 1


def test_finished_job_is_gone_and_its_vector_stored(store: Store, model: Model) -> None:
    one = memory("relay")
    add(store, one)
    finish(store, *store.jobs.lease(model, 10, 60))
    assert store.jobs.backlog(model).waiting == 0
    assert store.jobs.seconds_until_due(model) is None
    assert near(store, model, (1, 0)) == [one.id]


def test_finishing_twice_stores_once(store: Store, model: Model) -> None:
    add(store, memory("relay"))
    jobs = store.jobs.lease(model, 10, 60)
    finish(store, *jobs)
    finish(store, *jobs)
    assert store.memories.stats().passages == 1


def test_failed_job_stays_is_counted_and_waits(store: Store, model: Model) -> None:
    add(store, memory("relay"), memory("door"))
    jobs = store.jobs.lease(model, 10, 60)
    store.jobs.fail(jobs[:1], "the server is down", {jobs[0].key: 300.0})
    backlog = store.jobs.backlog(model)
    assert (backlog.waiting, backlog.failing, backlog.last_error) == (2, 1, "the server is down")
    assert store.jobs.lease(model, 10, 60) == ()
    store.jobs.retry_now()
    attempts = {job.key: job.attempts for job in store.jobs.lease(model, 10, 60)}
    assert attempts == {jobs[0].key: 1, jobs[1].key: 0}


def test_failure_without_a_delay_is_due_at_once(store: Store, model: Model) -> None:
    add(store, memory("relay"))
    for turn in range(3):
        (job,) = store.jobs.lease(model, 10, 60)
        assert job.attempts == turn
        store.jobs.fail([job], "again", {job.key: 0.0})


def test_vectors_of_an_older_revision_are_not_stored(store: Store, model: Model) -> None:
    one = memory("relay")
    add(store, one)
    stale = store.jobs.lease(model, 10, 60)
    replace(store, msgspec.structs.replace(one, content="door"))
    finish(store, *stale)
    assert near(store, model, (1, 0)) == []
    assert store.jobs.backlog(model).waiting == 1
    (fresh,) = store.jobs.lease(model, 10, 60)
    assert (fresh.content, fresh.revision) == ("door", 2)
    store.jobs.fail(stale, "a failure of the past", {stale[0].key: 300.0})
    assert store.jobs.backlog(model).failing == 0


@pytest.mark.parametrize("end", ["forgotten", "purged", "made sensitive"])
def test_vectors_of_removed_memories_are_not_stored(store: Store, model: Model, end: str) -> None:
    one = memory("relay")
    add(store, one)
    jobs = store.jobs.lease(model, 10, 60)
    if end == "purged":
        store.memories.purge(one.id)
    else:
        change = {"state": "deleted"} if end == "forgotten" else {"sensitive": True}
        replace(store, msgspec.structs.replace(one, **change))
    finish(store, *jobs)
    assert store.memories.stats().passages == 0
    assert store.jobs.backlog(model).waiting == 0


def test_each_model_has_its_own_queue(store: Store, model: Model) -> None:
    other = store.vectors.adopt("wide", "b", 3)
    add(store, memory("relay"))
    finish(store, *store.jobs.lease(model, 10, 60))
    assert (store.jobs.backlog(model).waiting, store.jobs.backlog(other).waiting) == (0, 1)


def test_newest_jobs_are_listed_leased_or_not(store: Store, model: Model) -> None:
    first, second, third = memory("one"), memory("two"), memory("three")
    add(store, first, second, third)
    store.jobs.lease(model, 10, 60)
    newest = store.jobs.newest(model, 2)
    assert {id: job.content for id, job in newest.items()} == {third.id: "three", second.id: "two"}
    assert list(newest) == [third.id, second.id]


def test_empty_queue_is_counted_again_only_after_a_change(
    open_store: Open, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any process may make the change.

    It may be a memory or a request to embed or read all again.
    """
    ours, theirs = open_store(), open_store()
    assert ours.jobs.backlog_for_answer(model) == (EMPTY_BACKLOG, 0)
    with monkeypatch.context() as blind:
        blind.setattr(ours.jobs, "_row", lambda *_, **__: pytest.fail("nothing changed"))
        assert ours.jobs.backlog_for_answer(model) == (EMPTY_BACKLOG, 0)
    add(theirs, memory("relay"))
    assert ours.jobs.backlog_for_answer(model) == (Backlog(1, 0, None), 1)
    finish(theirs, *theirs.jobs.lease(model, 10, 60))
    theirs.graph.finish_mentions([(reading, ()) for reading in theirs.graph.lease("rules", 10, 60)])
    assert ours.jobs.backlog_for_answer(model) == (EMPTY_BACKLOG, 0)
    theirs.upkeep.rebuild_vectors()
    assert ours.jobs.backlog_for_answer(model) == (Backlog(1, 0, None), 0)
    finish(theirs, *theirs.jobs.lease(model, 10, 60))
    assert ours.jobs.backlog_for_answer(model) == (EMPTY_BACKLOG, 0)
    theirs.upkeep.rebuild_graph()
    assert ours.jobs.backlog_for_answer(model) == (EMPTY_BACKLOG, 1)


def test_empty_queue_is_listed_again_only_after_a_change(
    open_store: Open, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process writes; this one, which saw an empty queue, finds the job."""
    ours, theirs = open_store(), open_store()
    assert ours.jobs.newest(model, 2) == {}
    with monkeypatch.context() as blind:
        blind.setattr(ours.jobs, "_rows", lambda *_, **__: pytest.fail("nothing changed"))
        assert ours.jobs.newest(model, 2) == {}
    one = memory("relay")
    add(theirs, one)
    assert list(ours.jobs.newest(model, 2)) == [one.id]
    assert list(ours.jobs.newest(model, 2)) == [one.id], "listed while it waits"


DECADE = 10 * 365 * 86_400.0


def test_delays_from_a_fast_clock_fall_due(store: Store, model: Model) -> None:
    """The clock was years ahead when one job was leased and another failed.

    Then it was corrected.
    """
    add(store, memory("relay"), memory("door"))
    leased, failed = store.jobs.lease(model, 10, DECADE)
    store.jobs.fail([failed], "the server is down", {failed.key: DECADE})
    assert store.jobs.seconds_until_due(model) == 0
    assert {job.key for job in store.jobs.lease(model, 10, 60)} == {leased.key, failed.key}
    assert store.jobs.lease(model, 10, 60) == (), "then it is leased normally"
    assert (
        max(LOCAL_LEASE_SECONDS, HOSTED_LEASE_SECONDS, 1.2 * MAX_RETRY_SECONDS)
        < LONGEST_WAIT_SECONDS
    )


def test_long_texts_do_not_delay_other_jobs(store: Store, model: Model) -> None:
    add(store, *(memory(f"{number:03} " + "x" * 30_000, owner="ana") for number in range(37)))
    add(store, memory("short of ana", owner="ana"), memory("short of bo", owner="bo"))
    first = store.jobs.lease(model, 64, 60, 16_384)
    assert [job.content[:12] for job in first[:2]] == ["short of bo", "short of ana"]
    assert [job.content[:4] for job in first[2:]] == ["000 "], (
        "the oldest comes last, so that it is not delayed forever"
    )
    second = store.jobs.lease(model, 64, 60, 16_384)
    assert [job.content[:4] for job in second] == ["001 "], (
        "each batch has one such text, so that others get a turn"
    )
    add(store, memory("another of bo", owner="bo"))
    assert store.jobs.lease(model, 64, 60, 16_384)[0].content == "another of bo"


def test_two_workers_share_one_queue_without_blocking(open_store: Open) -> None:
    ours, theirs = open_store(), open_store()
    model = ours.vectors.adopt("tiny", "a", 2)
    add(ours, *(memory("x" * 9_000) for _ in range(3)))
    taken = [store.jobs.lease(model, 64, 60, 10_000) for store in (ours, theirs, ours)]
    assert [len(jobs) for jobs in taken] == [1, 1, 1]
    assert len({job.key for jobs in taken for job in jobs}) == 3


def test_more_than_a_few_is_known_without_counting_all(store: Store, model: Model) -> None:
    add(store, memory("one"), memory("two"), memory("three"))
    other = store.vectors.adopt("other", "b", 2)
    finish(store, *store.jobs.lease(other, 10, 60))
    assert [store.jobs.has_more_than(model, few) for few in (0, 2, 3)] == [True, True, False]
    assert not store.jobs.has_more_than(other, 0)


def test_reported_counts_match_what_waits(store: Store, model: Model) -> None:
    add(store, memory("one"), memory("two"))
    (job, _) = store.jobs.lease(model, 10, 60)
    store.jobs.fail([job], "no answer", {job.key: 60.0})
    backlog, unread = store.jobs.backlog_for_answer(model)
    assert (backlog.waiting, backlog.failing, backlog.last_error, unread) == (2, 1, "no answer", 2)
    assert backlog == store.jobs.backlog(model)
