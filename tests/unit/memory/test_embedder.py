"""The embedder behind a store: slow, silent, down, refusing, changed for another. Nothing else may suffer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.opened import Opened
from support.waiting import ended, grown
from support.word_embedder import WordEmbedder
from trivet import StoreError, Trivet, TrivetError
from trivet.common import breaker
from trivet.memory.worker.embed_pending import PASSAGES_AT_ONCE
from trivet.models.embed.base import SimilarityBaseline
from trivet.search.concurrency import THREADS_PER_LEG
from trivet.store.sqlite.store import SqliteStore
from trivet.types import Caller

# A hanging leg is waited for so long; the lexical leg needs a few milliseconds of it, also on a busy machine.
LONG_FOR_WORDS_MS = 500
LONGER_THAN_A_TEST = 1e6


def retry_now(trivet: Trivet) -> None:
    """Ends every back-off, as time would."""
    store = SqliteStore(Path(trivet.settings.path))
    store.jobs.retry_now()
    store.close()


def leg(trivet: Trivet, query: str, name: str) -> tuple[bool, str | None]:
    found = {one.leg: one for one in trivet.recall(query).health.legs}[name]
    return found.answered, found.reason


def test_a_hanging_leg_is_left_out_and_the_answer_says_so(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    trivet = open_trivet(embedder=embedder.spec(), leg_time_limit_ms=LONG_FOR_WORDS_MS)
    id = trivet.remember("zebra relay").id
    trivet.drain()
    embedder.answering.clear()
    answer = trivet.recall("zebra relay")
    assert [hit.id for hit in answer.hits] == [id]
    assert answer.health.degraded
    dense = answer.health.legs[1]
    assert (dense.leg, dense.answered, dense.candidates) == ("dense", False, 0)
    assert f"{LONG_FOR_WORDS_MS} ms" in (dense.reason or "")
    assert "dense" not in answer.hits[0].why.legs
    embedder.answering.set()


def test_a_hung_endpoint_is_waited_for_once_and_its_leg_returns_by_itself(
    open_trivet: Opened, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaker, "FIRST_PAUSE_SECONDS", LONGER_THAN_A_TEST)
    trivet = open_trivet(embedder=embedder.spec(), leg_time_limit_ms=LONG_FOR_WORDS_MS)
    trivet.remember("zebra relay")
    trivet.drain()
    embedder.answering.clear()
    asked = len(embedder.texts)
    assert leg(trivet, "zebra first", "dense") == (
        False,
        f"no answer within {LONG_FOR_WORDS_MS} ms",
    )
    for number in range(10):
        answered, reason = leg(trivet, f"zebra later{number}", "dense")
        assert (answered, "is not waited for" in (reason or "")) == (False, True)
        assert "http" not in (reason or ""), "where it is, is not for everyone to know"
    assert len(trivet.recall("zebra").hits) == 1
    trivet.remember("another zebra")
    trivet.engine.worker.drain(insists=False)
    assert len(embedder.texts) == asked + 1, "nobody else waited, nor did the worker"
    assert (trivet.stats().not_embedded, trivet.stats().failing_jobs) == (1, 0)
    embedder.answering.set()
    assert trivet.drain() == 1, "who insists has it asked"
    assert leg(trivet, "zebra again", "dense") == (True, None)


def test_a_leg_that_hangs_for_ever_does_not_use_up_the_others(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    trivet = open_trivet(embedder=embedder.spec(), leg_time_limit_ms=LONG_FOR_WORDS_MS)
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


def test_a_failing_leg_is_left_out_and_comes_back(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
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


def test_a_store_begun_while_the_embedder_is_down(
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


def test_jobs_wait_are_counted_and_recover(open_trivet: Opened, embedder: WordEmbedder) -> None:
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


def test_one_refused_text_does_not_hold_up_the_others(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    trivet = open_trivet(embedder=embedder.spec())
    embedder.refused = "poison"
    for text in ("one", "two poison", "three", "four"):
        trivet.remember(text)
    for _ in range(3):
        trivet.drain()
        retry_now(trivet)
    assert (trivet.stats().not_embedded, trivet.stats().passages) == (1, 3)
    assert "refused" in (trivet.recall("one").health.last_error or "")


def test_a_refused_text_is_told_to_nobody(open_trivet: Opened, embedder: WordEmbedder) -> None:
    """The provider's answer quotes it. Users get a code, the owner an error that says what to do, nobody the text."""
    trivet = open_trivet(embedder=embedder.spec())
    for name in ("ana", "bo"):
        trivet.engine.store.accounts.add_user(name, "writer")
    embedder.refused = "diagnosis"
    ana, bo = (trivet.acting_as(user(name)) for name in ("ana", "bo"))
    ana.remember("My diagnosis is measles.")
    trivet.drain()
    seen = [str((it.stats(), it.recall("what is there").health)) for it in (bo, ana, trivet)]
    seen.append(str(trivet.doctor()))
    seen.append(str(trivet.engine.store.jobs.backlog(trivet.engine.embedding.models()[0])))
    assert [text for text in seen if "diagnosis" in text or "measles" in text] == []
    assert bo.stats().last_error == "a model refused (HTTP 400)"
    assert [text for text in seen[:3] if str(embedder.port) in text] == [], (
        "the address is for the owner alone"
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


def test_many_jobs_behind_a_refused_one_are_embedded(
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


def test_progress_is_told(open_trivet: Opened, embedder: WordEmbedder) -> None:
    trivet = open_trivet(embedder=embedder.spec())
    trivet.remember_many({"content": f"text {number}"} for number in range(100))
    steps: list[int] = []
    assert trivet.drain(progress=steps.append) == 100
    assert sum(steps) == 100
    assert len(steps) > 1


def test_the_next_batch_is_asked_for_before_the_one_before_is_stored(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    trivet = open_trivet(embedder=embedder.spec())
    trivet.remember("first")
    trivet.drain()
    embedder.texts.clear()
    trivet.remember_many({"content": f"text {number}"} for number in range(100))
    stored: list[int] = []

    def the_embedder_goes_on(count: int) -> None:
        stored.append(count)
        if len(stored) == 1:
            grown(embedder.texts, PASSAGES_AT_ONCE + 1)

    assert trivet.drain(progress=the_embedder_goes_on) == 100


def test_what_comes_while_the_last_batch_is_embedded_is_embedded_too(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    trivet = open_trivet(embedder=embedder.spec())
    trivet.remember("first")
    later: list[str] = []

    def one_more(count: int) -> None:
        if not later:
            later.append(trivet.remember("second").id)

    assert trivet.drain(progress=one_more) == 2
    assert trivet.stats().not_embedded == 0


def test_nothing_more_is_asked_after_three_failures_and_all_of_it_waits(
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
        "what was not tried is leased to nobody"
    )


def test_what_could_not_be_stored_and_what_was_begun_meanwhile_is_leased_to_nobody(
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


def test_an_edit_embeds_anew(hybrid: Trivet, embedder: WordEmbedder) -> None:
    id = hybrid.remember("zebra relay").id
    other = hybrid.remember("garden water").id
    hybrid.drain()
    hybrid.edit(id, content="garden water cellar")
    embedder.texts.clear()
    hybrid.drain()
    assert embedder.texts == ["garden water cellar"]
    hits = hybrid.recall("garden water", recipe="legs(dense)").hits
    assert [hit.id for hit in hits] == [other, id]


def test_a_title_is_embedded_with_its_text(hybrid: Trivet, embedder: WordEmbedder) -> None:
    hybrid.remember("It listens.", title="Zebra relay")
    hybrid.drain()
    assert "Zebra relay\nIt listens." in embedder.texts


def test_the_background_worker_embeds_without_being_asked(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    trivet = open_trivet(embedder=embedder.spec(), background=True)
    embedder.asked.clear()
    trivet.remember("zebra relay")
    assert embedder.asked.wait(30)
    trivet.drain()
    assert trivet.stats().not_embedded == 0


def test_closing_does_not_wait_for_a_hanging_embedder(
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
def wider() -> Iterator[WordEmbedder]:
    server = WordEmbedder(dimension=48)
    yield server
    server.stop()


def test_switching_keeps_the_old_vectors_answering_until_the_new_are_there(
    open_trivet: Opened, embedder: WordEmbedder, wider: WordEmbedder
) -> None:
    embedder.meaning = wider.meaning = {"automobile": "car"}
    first = open_trivet(embedder=embedder.spec())
    id = first.remember("The car is red.").id
    first.remember("Gardens need water.")
    first.drain()
    old = first.stats().embedder

    second = open_trivet(embedder=wider.spec("wide"), earlier_embedders=[embedder.spec()])
    assert second.drain() == 0, "nothing moves by itself"
    hit = second.recall("automobile", recipe="legs(dense)").hits[0]
    assert (hit.id, second.stats().embedder) == (id, old)

    wider.refused = "Gardens"
    second.reindex(lexical=False, graph=False)
    third = second.remember("A car park.").id
    retry_now(second)
    second.drain()
    answer = second.recall("automobile", recipe="legs(dense)")
    assert {hit.id for hit in answer.hits[:2]} == {id, third}
    assert answer.health.embedder == old
    assert any("moving to" in note and "wide" in note for note in answer.health.notes)

    wider.refused = None
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
    assert answer.hits[0].id in {id, third}, "a process with the old settings goes on by words,"
    assert any(
        "openai:wide" in note and "reindex --vectors" in note for note in answer.health.notes
    ), "and is told"


def test_going_back_before_the_new_model_is_filled(
    open_trivet: Opened, embedder: WordEmbedder, wider: WordEmbedder
) -> None:
    first = open_trivet(embedder=embedder.spec())
    first.remember("The car is red.")
    first.drain()
    wider.refused = "car"
    open_trivet(embedder=wider.spec("wide")).reindex()
    again = open_trivet(embedder=embedder.spec())
    again.drain()
    assert any("moving to openai:wide" in note for note in again.recall("car").health.notes), (
        "it is another's move"
    )
    again.reindex()
    answer = again.recall("car")
    assert answer.health.notes == ()
    assert not answer.health.degraded
    assert again.stats().passages == 1


def test_two_processes_with_different_embedders_leave_each_others_vectors_alone(
    open_trivet: Opened, embedder: WordEmbedder, wider: WordEmbedder
) -> None:
    ours, theirs = open_trivet(embedder=embedder.spec()), open_trivet(embedder=wider.spec("wide"))
    for trivet in (ours, theirs) * 3:
        trivet.remember(f"fact number {trivet.stats().revisions}")
        trivet.drain()
    ours.drain()
    assert [text for text in wider.texts if "fact" in text] == []
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


def test_a_store_without_memories_takes_the_embedder_of_whoever_opens_it(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    open_trivet(embedder="bundled")
    trivet = open_trivet(embedder=embedder.spec())
    trivet.remember("zebra relay")
    assert trivet.drain() == 1
    assert (trivet.stats().embedder, trivet.stats().notes) == ("openai:words", ())


def test_another_dimension_behind_the_same_name_is_an_error_and_reindex_mends_it(
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


def test_without_an_embedder_nothing_waits(trivet: Trivet) -> None:
    trivet.remember("zebra relay")
    answer = trivet.recall("zebra")
    assert [one.leg for one in answer.health.legs] == ["lexical", "graph"]
    assert (answer.health.degraded, answer.health.embedder, answer.health.not_embedded) == (
        False,
        None,
        0,
    )
    assert trivet.drain() == 0


def test_an_embedder_given_later_takes_up_what_was_stored_before(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    id = open_trivet().remember("zebra relay").id
    trivet = open_trivet(embedder=embedder.spec())
    assert trivet.recall("zebra").health.not_embedded == 1
    assert trivet.drain() == 1
    assert [hit.id for hit in trivet.recall("zebra", recipe="legs(dense)").hits] == [id]


def test_a_missing_key_of_a_hosted_embedder_is_a_note_and_no_failure(
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


def test_a_bad_embedder_name_creates_no_store(open_trivet: Opened, tmp_path: Path) -> None:
    where = tmp_path / "new" / "memory.db"
    for name in ("nonsense", "folder:/nowhere/at/all", "voyage"):
        with pytest.raises(TrivetError):
            open_trivet(where, embedder=name)
        assert not where.exists()


def test_embed_retries_at_once_what_had_failed(open_trivet: Opened, embedder: WordEmbedder) -> None:
    trivet = open_trivet(embedder=embedder.spec())
    trivet.remember("first")
    trivet.drain()
    embedder.refused = "second"
    trivet.remember("second")
    assert trivet.drain() == 0
    embedder.refused = None
    assert trivet.drain() == 0  # it waits out its back-off
    assert trivet.embed() == 1
    assert trivet.stats().not_embedded == 0


def test_a_configured_embedder_that_does_not_answer_is_told(
    open_trivet: Opened, embedder: WordEmbedder
) -> None:
    open_trivet().remember("a fact")
    silent = embedder.spec()
    embedder.stop()
    trivet = open_trivet(embedder=silent)
    assert any("has not answered yet" in note for note in trivet.recall("fact").health.notes)
    assert [finding.check for finding in trivet.doctor() if not finding.ok] == ["embedder"]


def test_closing_gives_back_what_was_not_embedded(
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


def test_cosines_count_from_a_floor_below_those_of_unrelated_texts(
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

    def said_by_the_vectors() -> float:
        return trivet.recall("where does the pet rest").hits[0].why.legs["dense"].normalised

    monkeypatch.setattr(embedding.embedder_of(serving), "background", None)
    assert embedding.floor(serving) == -1.0, "nobody has measured it"
    from_the_least = said_by_the_vectors()
    monkeypatch.setattr(
        embedding.embedder_of(serving), "background", SimilarityBaseline(mean=0.6, deviation=0.05)
    )
    assert embedding.floor(serving) == pytest.approx(-0.05)
    assert said_by_the_vectors() > 1.5 * from_the_least, (
        "where all cosines are high, small differences say more"
    )
