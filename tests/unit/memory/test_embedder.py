"""A slow, silent, failing, or replaced embedder never harms recall, writes, or other stores."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.store_fixtures import Opened
from support.waiting import ended, grown
from support.word_embedder import WordEmbedder
from trivet import StoreError, Trivet, TrivetError
from trivet.common import breaker
from trivet.memory.worker.embed_pending import PASSAGES_AT_ONCE
from trivet.models.embed.base import SimilarityBaseline
from trivet.search.concurrency import THREADS_PER_LEG
from trivet.store.sqlite.store import SqliteStore
from trivet.types import Caller

# Wait for a hanging leg; the lexical leg needs a few milliseconds even on a busy machine.
LEG_LIMIT_MS = 500
LONGER_THAN_A_TEST = 1e6


def retry_now(trivet: Trivet) -> None:
    """End every back-off without waiting."""
    store = SqliteStore(Path(trivet.settings.path))
    store.jobs.retry_now()
    store.close()


def leg(trivet: Trivet, query: str, name: str) -> tuple[bool, str | None]:
    found = {one.leg: one for one in trivet.recall(query).health.legs}[name]
    return found.answered, found.reason


def test_hanging_leg_is_left_out_and_reported(open_trivet: Opened, embedder: WordEmbedder) -> None:
    trivet = open_trivet(embedder=embedder.spec(), leg_time_limit_ms=LEG_LIMIT_MS)
    id = trivet.remember("zebra relay").id
    trivet.drain()
    embedder.answering.clear()
    answer = trivet.recall("zebra relay")
    assert [hit.id for hit in answer.hits] == [id]
    assert answer.health.degraded
    dense = answer.health.legs[1]
    assert (dense.leg, dense.answered, dense.candidates) == ("dense", False, 0)
    assert f"{LEG_LIMIT_MS} ms" in (dense.reason or "")
    assert "dense" not in answer.hits[0].why.legs
    embedder.answering.set()


def test_hung_endpoint_is_waited_for_once_and_recovers(
    open_trivet: Opened, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaker, "FIRST_PAUSE_SECONDS", LONGER_THAN_A_TEST)
    trivet = open_trivet(embedder=embedder.spec(), leg_time_limit_ms=LEG_LIMIT_MS)
    trivet.remember("zebra relay")
    trivet.drain()
    embedder.answering.clear()
    asked = len(embedder.texts)
    assert leg(trivet, "zebra first", "dense") == (
        False,
        f"no answer within {LEG_LIMIT_MS} ms",
    )
    for number in range(10):
        answered, reason = leg(trivet, f"zebra later{number}", "dense")
        assert (answered, "is skipped" in (reason or "")) == (False, True)
        assert "http" not in (reason or ""), "the endpoint's address is not for every user"
    assert len(trivet.recall("zebra").hits) == 1
    trivet.remember("another zebra")
    trivet.engine.worker.drain(insists=False)
    assert len(embedder.texts) == asked + 1, (
        "one request only: later recalls and the worker skip the endpoint"
    )
    assert (trivet.stats().not_embedded, trivet.stats().failing_jobs) == (1, 0)
    embedder.answering.set()
    assert trivet.drain() == 1, "an explicit drain asks it"
    assert leg(trivet, "zebra again", "dense") == (True, None)


def test_hanging_leg_does_not_use_up_all_threads(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    trivet = open_trivet(embedder=embedder.spec(), leg_time_limit_ms=LEG_LIMIT_MS)
    trivet.remember("zebra relay")
    trivet.drain()
    embedder.answering.clear()
    for number in range(THREADS_PER_LEG + 1):
        answer = trivet.recall(f"zebra number{number}")
        assert len(answer.hits) == 1
        assert answer.health.degraded
    names = [thread.name for thread in threading.enumerate()]
    assert 0 < names.count("trivet-dense") <= THREADS_PER_LEG
    embedder.answering.set()


def test_failing_leg_is_left_out_and_recovers(open_trivet: Opened, embedder: WordEmbedder) -> None:
    trivet = open_trivet(embedder=embedder.spec())
    id = trivet.remember("zebra relay").id
    trivet.drain()
    embedder.stop()
    answer = trivet.recall("zebra")
    assert [hit.id for hit in answer.hits] == [id]
    assert answer.health.degraded
    assert "refused" in (answer.health.legs[1].reason or "")
    assert not {finding.check: finding.ok for finding in trivet.doctor()}["embedder"]
    embedder.start()
    assert not trivet.recall("zebra again").health.degraded


def test_new_store_works_while_embedder_is_down(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    embedder.stop()
    trivet = open_trivet(embedder=embedder.spec())
    id = trivet.remember("zebra relay").id
    trivet.edit(id, importance=0.9)
    other = trivet.remember("something else").id
    trivet.forget(other)
    trivet.restore(other)
    assert trivet.import_(['{"content": "a third thing"}']).stored == 1
    assert trivet.drain() == 0
    answer = trivet.recall("zebra")
    assert [hit.id for hit in answer.hits] == [id]
    assert answer.health.degraded
    assert answer.health.not_embedded == 3
    assert trivet.stats().not_embedded == 3
    assert "refused" in (answer.health.last_error or "")
    embedder.start()
    assert trivet.drain() == 3
    answer = trivet.recall("zebra")
    assert (answer.health.degraded, answer.health.not_embedded, answer.health.last_error) == (
        False,
        0,
        None,
    )


def test_failed_jobs_are_counted_and_recover(open_trivet: Opened, embedder: WordEmbedder) -> None:
    trivet = open_trivet(embedder=embedder.spec())
    trivet.remember("first")
    trivet.drain()
    embedder.stop()
    second = trivet.remember("zebra relay").id
    third = trivet.remember("another zebra").id
    assert trivet.drain() == 0
    health = trivet.recall("first").health
    assert (health.not_embedded, health.failing_jobs) == (2, 2)
    assert "refused" in (health.last_error or "")
    jobs = {finding.check: finding for finding in trivet.doctor()}["jobs"]
    assert not jobs.ok
    assert "refused" in jobs.detail
    embedder.start()
    assert trivet.drain() == 0, "a failed job waits for its back-off"
    retry_now(trivet)
    assert trivet.drain() == 2
    health = trivet.recall("zebra").health
    assert (health.not_embedded, health.failing_jobs, health.last_error) == (0, 0, None)
    dense = trivet.recall("zebra", recipe="legs(dense)")
    assert {hit.id for hit in dense.hits} >= {second, third}


def test_refused_text_does_not_block_others(open_trivet: Opened, embedder: WordEmbedder) -> None:
    trivet = open_trivet(embedder=embedder.spec())
    embedder.refused = "poison"
    for text in ("one", "two poison", "three", "four"):
        trivet.remember(text)
    for _ in range(3):
        trivet.drain()
        retry_now(trivet)
    assert (trivet.stats().not_embedded, trivet.stats().passages) == (1, 3)
    assert "refused" in (trivet.recall("one").health.last_error or "")


def test_refused_text_is_never_disclosed(open_trivet: Opened, embedder: WordEmbedder) -> None:
    """The provider's error quotes the text: users get a code, the owner a remedy."""
    trivet = open_trivet(embedder=embedder.spec())
    for name in ("ana", "bo"):
        trivet.engine.store.accounts.add_user(name, "writer")
    embedder.refused = "diagnosis"
    ana, bo = (trivet.acting_as(user(name)) for name in ("ana", "bo"))
    ana.remember("My diagnosis is measles.")
    trivet.drain()
    reports = [str((it.stats(), it.recall("what is there").health)) for it in (bo, ana, trivet)]
    reports.append(str(trivet.doctor()))
    reports.append(str(trivet.engine.store.jobs.backlog(trivet.engine.embedding.models()[0])))
    assert [text for text in reports if "diagnosis" in text or "measles" in text] == []
    assert bo.stats().last_error == "a model refused (HTTP 400)"
    assert [text for text in reports[:3] if str(embedder.port) in text] == [], (
        "only the owner sees the address"
    )
    assert "window=N" in (trivet.stats().last_error or "")
    embedder.refused = "is anybody there"
    assert str(embedder.port) in str(
        [finding for finding in trivet.doctor() if finding.check == "embedder"]
    )


def user(name: str) -> Caller:
    return Caller(
        tenant="default", user=name, role="writer", key="k", rights=frozenset(("read", "write"))
    )


def test_jobs_behind_a_refused_one_are_embedded(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    trivet = open_trivet(embedder=embedder.spec())
    embedder.refused = "poison"
    trivet.remember("poison")
    trivet.remember_many({"content": f"text {number}"} for number in range(150))
    for _ in range(3):
        trivet.drain()
        retry_now(trivet)
    assert trivet.stats().not_embedded == 1


def test_drain_reports_progress(open_trivet: Opened, embedder: WordEmbedder) -> None:
    trivet = open_trivet(embedder=embedder.spec())
    trivet.remember_many({"content": f"text {number}"} for number in range(100))
    steps: list[int] = []
    assert trivet.drain(progress=steps.append) == 100
    assert sum(steps) == 100
    assert len(steps) > 1


def test_next_batch_is_requested_before_previous_is_stored(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    trivet = open_trivet(embedder=embedder.spec())
    trivet.remember("first")
    trivet.drain()
    embedder.texts.clear()
    trivet.remember_many({"content": f"text {number}"} for number in range(100))
    stored: list[int] = []

    def wait_for_next_batch(count: int) -> None:
        stored.append(count)
        if len(stored) == 1:
            grown(embedder.texts, PASSAGES_AT_ONCE + 1)

    assert trivet.drain(progress=wait_for_next_batch) == 100


def test_memory_added_during_last_batch_is_embedded(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    trivet = open_trivet(embedder=embedder.spec())
    trivet.remember("first")
    later: list[str] = []

    def add_memory(count: int) -> None:
        if not later:
            later.append(trivet.remember("second").id)

    assert trivet.drain(progress=add_memory) == 2
    assert trivet.stats().not_embedded == 0


def test_drain_stops_after_three_failures_and_keeps_jobs(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    trivet = open_trivet(embedder=embedder.spec())
    trivet.remember("first")
    trivet.drain()
    embedder.refused = "text"
    trivet.remember_many({"content": f"text {number}"} for number in range(200))
    trivet.drain()
    counts = trivet.stats()
    assert (counts.not_embedded, counts.failing_jobs) == (200, 3 * PASSAGES_AT_ONCE)
    (model,) = trivet.engine.embedding.models()
    assert trivet.engine.store.jobs.seconds_until_due(model) == 0.0, (
        "untried jobs must not stay leased"
    )


def test_failed_write_releases_all_leases(
    open_trivet: Opened, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    trivet = open_trivet(embedder=embedder.spec())
    trivet.remember_many({"content": f"text {number}"} for number in range(3 * PASSAGES_AT_ONCE))
    jobs = trivet.engine.store.jobs

    def full(done: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(jobs, "finish", full)
        with pytest.raises(StoreError, match="full"):
            trivet.drain()
    (model,) = trivet.engine.embedding.models()
    assert len(jobs.lease(model, 1_000, 1.0)) == 3 * PASSAGES_AT_ONCE


def test_edit_reembeds(hybrid: Trivet, embedder: WordEmbedder) -> None:
    id = hybrid.remember("zebra relay").id
    other = hybrid.remember("garden water").id
    hybrid.drain()
    hybrid.edit(id, content="garden water cellar")
    embedder.texts.clear()
    hybrid.drain()
    assert embedder.texts == ["garden water cellar"]
    hits = hybrid.recall("garden water", recipe="legs(dense)").hits
    assert [hit.id for hit in hits] == [other, id]


def test_title_is_embedded_with_the_text(hybrid: Trivet, embedder: WordEmbedder) -> None:
    hybrid.remember("It listens.", title="Zebra relay")
    hybrid.drain()
    assert "Zebra relay\nIt listens." in embedder.texts


def test_background_worker_embeds_unasked(open_trivet: Opened, embedder: WordEmbedder) -> None:
    trivet = open_trivet(embedder=embedder.spec(), background=True)
    embedder.asked.clear()
    trivet.remember("zebra relay")
    assert embedder.asked.wait(30)
    trivet.drain()
    assert trivet.stats().not_embedded == 0


def test_close_does_not_wait_for_a_hanging_embedder(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    embedder.answering.clear()
    trivet = open_trivet(embedder=embedder.spec(), background=True)
    trivet.remember("zebra relay")
    assert embedder.asked.wait(30)
    closed = threading.Event()

    def close() -> None:
        trivet.close()
        closed.set()

    closer = threading.Thread(target=close)
    closer.start()
    assert closed.wait(30), "close() waited for the embedder"
    embedder.answering.set()
    ended(closer)
    again = open_trivet(embedder=embedder.spec())
    assert again.recall("zebra").hits[0].content == "zebra relay"


@pytest.fixture
def wide_embedder() -> Iterator[WordEmbedder]:
    server = WordEmbedder(dimension=48)
    yield server
    server.stop()


def test_old_vectors_serve_until_new_ones_are_complete(
    open_trivet: Opened, embedder: WordEmbedder, wide_embedder: WordEmbedder
) -> None:
    embedder.meaning = wide_embedder.meaning = {"automobile": "car"}
    first = open_trivet(embedder=embedder.spec())
    id = first.remember("The car is red.").id
    first.remember("Gardens need water.")
    first.drain()
    old = first.stats().embedder

    second = open_trivet(embedder=wide_embedder.spec("wide"), earlier_embedders=[embedder.spec()])
    assert second.drain() == 0, "no re-embedding without reindex"
    hit = second.recall("automobile", recipe="legs(dense)").hits[0]
    assert (hit.id, second.stats().embedder) == (id, old)

    wide_embedder.refused = "Gardens"
    second.reindex(lexical=False, graph=False)
    third = second.remember("A car park.").id
    retry_now(second)
    second.drain()
    answer = second.recall("automobile", recipe="legs(dense)")
    assert {hit.id for hit in answer.hits[:2]} == {id, third}
    assert answer.health.embedder == old
    assert any("moving to" in note and "wide" in note for note in answer.health.notes)

    wide_embedder.refused = None
    for _ in range(2):
        retry_now(second)
        second.drain()
    answer = second.recall("automobile", recipe="legs(dense)")
    assert answer.hits[0].id in {id, third}
    assert "wide" in (answer.health.embedder or "")
    assert answer.health.notes == ()
    assert second.stats().passages == 3
    assert all(finding.ok for finding in second.doctor())
    answer = first.recall("car")
    assert answer.hits[0].id in {id, third}, "a process with the old settings still finds by words"
    assert any(
        "openai:wide" in note and "reindex --vectors" in note for note in answer.health.notes
    ), "and reports the move"


def test_switching_back_before_the_new_model_is_complete(
    open_trivet: Opened, embedder: WordEmbedder, wide_embedder: WordEmbedder
) -> None:
    first = open_trivet(embedder=embedder.spec())
    first.remember("The car is red.")
    first.drain()
    wide_embedder.refused = "car"
    open_trivet(embedder=wide_embedder.spec("wide")).reindex()
    again = open_trivet(embedder=embedder.spec())
    again.drain()
    assert any("moving to openai:wide" in note for note in again.recall("car").health.notes), (
        "another process started the move"
    )
    again.reindex()
    answer = again.recall("car")
    assert answer.health.notes == ()
    assert not answer.health.degraded
    assert again.stats().passages == 1


def test_different_embedders_leave_each_others_vectors_alone(
    open_trivet: Opened, embedder: WordEmbedder, wide_embedder: WordEmbedder
) -> None:
    ours, theirs = (
        open_trivet(embedder=embedder.spec()),
        open_trivet(embedder=wide_embedder.spec("wide")),
    )
    for trivet in (ours, theirs) * 3:
        trivet.remember(f"fact number {trivet.stats().revisions}")
        trivet.drain()
    ours.drain()
    assert [text for text in wide_embedder.texts if "fact" in text] == []
    assert sorted(text for text in embedder.texts if "fact" in text) == [
        f"fact number {number}" for number in range(6)
    ]
    assert (ours.stats().embedder, ours.stats().notes, ours.stats().not_embedded) == (
        "openai:words",
        (),
        0,
    )
    (note,) = theirs.stats().notes
    assert "openai:words" in note
    assert "openai:wide" in note
    assert note in theirs.recall("fact").health.notes
    finding = {finding.check: finding for finding in theirs.doctor()}["embedder"]
    assert "reindex --vectors" in (finding.remedy or "")
    assert not finding.ok


def test_empty_store_adopts_the_configured_embedder(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    open_trivet(embedder="bundled")
    trivet = open_trivet(embedder=embedder.spec())
    trivet.remember("zebra relay")
    assert trivet.drain() == 1
    assert (trivet.stats().embedder, trivet.stats().notes) == ("openai:words", ())


def test_changed_dimension_is_an_error_that_reindex_repairs(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    first = open_trivet(embedder=embedder.spec())
    old = first.remember("zebra relay").id
    first.drain()
    first.close()
    embedder.dimension = 20
    trivet = open_trivet(embedder=embedder.spec())
    new = trivet.remember("zebra garden").id
    assert trivet.drain() == 0
    assert trivet.stats().passages == 1
    assert "20 dimensions" in (trivet.recall("zebra").health.last_error or "")
    answered, reason = leg(trivet, "zebra", "dense")
    assert not answered
    assert "dimensions" in (reason or "")
    assert {hit.id for hit in trivet.recall("zebra").hits} == {old, new}
    trivet.reindex(lexical=False)
    answer = trivet.recall("zebra")
    assert not answer.health.degraded
    assert {hit.id for hit in trivet.recall("zebra", recipe="legs(dense)").hits} == {old, new}
    assert all(finding.ok for finding in trivet.doctor())


def test_no_embedder_means_no_pending_work(trivet: Trivet) -> None:
    trivet.remember("zebra relay")
    answer = trivet.recall("zebra")
    assert [one.leg for one in answer.health.legs] == ["lexical", "graph"]
    assert (answer.health.degraded, answer.health.embedder, answer.health.not_embedded) == (
        False,
        None,
        0,
    )
    assert trivet.drain() == 0


def test_embedder_added_later_embeds_earlier_memories(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    id = open_trivet().remember("zebra relay").id
    trivet = open_trivet(embedder=embedder.spec())
    assert trivet.recall("zebra").health.not_embedded == 1
    assert trivet.drain() == 1
    assert [hit.id for hit in trivet.recall("zebra", recipe="legs(dense)").hits] == [id]


def test_missing_api_key_is_reported_without_failing(
    open_trivet: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    trivet = open_trivet(embedder="voyage:voyage-3")
    id = trivet.remember("zebra relay").id
    assert [hit.id for hit in trivet.recall("zebra relay").hits] == [id]
    answered, reason = leg(trivet, "zebra relay", "dense")
    assert not answered
    assert "set VOYAGE_API_KEY" in (reason or "")
    trivet.embed()
    assert "set VOYAGE_API_KEY" in (trivet.stats().last_error or "")


def test_invalid_embedder_creates_no_store(open_trivet: Opened, tmp_path: Path) -> None:
    where = tmp_path / "new" / "memory.db"
    for name in ("nonsense", "folder:/nowhere/at/all", "voyage"):
        with pytest.raises(TrivetError):
            open_trivet(where, embedder=name)
        assert not where.exists()


def test_embed_retries_failed_jobs_at_once(open_trivet: Opened, embedder: WordEmbedder) -> None:
    trivet = open_trivet(embedder=embedder.spec())
    trivet.remember("first")
    trivet.drain()
    embedder.refused = "second"
    trivet.remember("second")
    assert trivet.drain() == 0
    embedder.refused = None
    assert trivet.drain() == 0  # The job waits for its back-off.
    assert trivet.embed() == 1
    assert trivet.stats().not_embedded == 0


def test_unanswering_embedder_is_reported(open_trivet: Opened, embedder: WordEmbedder) -> None:
    open_trivet().remember("a fact")
    silent = embedder.spec()
    embedder.stop()
    trivet = open_trivet(embedder=silent)
    assert any("has not answered yet" in note for note in trivet.recall("fact").health.notes)
    assert [finding.check for finding in trivet.doctor() if not finding.ok] == ["embedder"]


def test_close_returns_unfinished_jobs(
    open_trivet: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trivet.memory.worker.embed_pending.PASSAGES_AT_ONCE", 4)
    trivet = open_trivet(embedder="bundled")
    trivet.remember_many({"content": f"Sentence {number} about rivers."} for number in range(12))
    done: list[int] = []

    def stop_after_the_first(count: int) -> None:
        done.append(count)
        trivet.engine.worker.stop()

    trivet.drain(progress=stop_after_the_first)
    assert 0 < sum(done) < 12
    again = open_trivet(embedder="bundled")
    assert again.drain() == 12 - sum(done)


def test_cosine_floor_lies_below_unrelated_texts(
    open_trivet: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    trivet = open_trivet(embedder="bundled")
    trivet.remember_many(
        {"content": text} for text in ("The cat sleeps on the radiator.", "Soup needs leek.")
    )
    trivet.drain()
    embedding = trivet.engine.embedding
    serving = embedding.serving()
    assert serving is not None

    def dense_score() -> float:
        return trivet.recall("where does the pet rest").hits[0].why.legs["dense"].normalised

    monkeypatch.setattr(embedding.embedder_of(serving), "background", None)
    assert embedding.floor(serving) == -1.0, "no measured baseline"
    unscaled = dense_score()
    monkeypatch.setattr(
        embedding.embedder_of(serving), "background", SimilarityBaseline(mean=0.6, deviation=0.05)
    )
    assert embedding.floor(serving) == pytest.approx(-0.05)
    assert dense_score() > 1.5 * unscaled, (
        "with high baseline cosines, small differences count more"
    )
