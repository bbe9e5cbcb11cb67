"""Changed facts are reported on save, linked only by the caller, and ranked newest first."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest

from support.store_fixtures import Opened
from trivet import Conflict, NotFound, Trivet
from trivet.errors import RerankerError, StoreError
from trivet.memory.supersession import compare, verdict, words
from trivet.memory.supersession import verdict as reader
from trivet.memory.supersession.newer_first import asks_about_past
from trivet.memory.supersession.verdict import OlderText, change_model, judge_updates
from trivet.models.embed.base import UNMEASURED_BASELINE
from trivet.search.concurrency import RecallLoad

OLD = "Unlocking a bike costs CHF 1.00."
NEW = "Unlocking a bike costs CHF 1.50 from 1 January 2027."
LAST_YEAR = "2025-03-01"
PORTS = (
    "The staging database listens on port 5433.",
    "The port of the staging database is 5434.",
    "The staging database was moved to port 5435.",
    "The staging database of billing listens on port 5436.",
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OLD, NEW),
        ("Always deploy on Friday.", "Never deploy on Friday."),
        (
            "The staging database listens on port 5433.",
            "The staging database now listens on port 5440.",
        ),
        ("We use feature flags for every change.", "We no longer use feature flags."),
        ("Deploys happen on Thursdays.", "Deploys happen on Tuesdays."),
    ],
)
def test_changed_value_is_an_update(old: str, new: str) -> None:
    assert judge_updates(new, [OlderText(old)])[0].probability >= change_model().report_from


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "The staging database listens on port 5433.",
            "The production database listens on port 5432.",
        ),
        ("Anna's birthday is on 4 May.", "Ben's birthday is on 19 July."),
        ("Clara plays the violin.", "Clara plays the piano as well."),
        ("Team Otter deploys on Tuesdays.", "Team Badger deploys on Thursdays."),
        ("The code for the garage door is 4090.", "The code for the cellar door is 1177."),
    ],
)
def test_same_fact_about_another_subject_is_not_an_update(old: str, new: str) -> None:
    assert judge_updates(new, [OlderText(old)])[0].probability < change_model().report_from


def test_possible_update_is_reported_but_not_linked(trivet: Trivet) -> None:
    old = trivet.remember(OLD, created_at=LAST_YEAR).id
    trivet.remember("Anna's birthday is on 4 May.")
    new = trivet.remember(NEW)
    (update,) = new.may_update
    assert (update.id, update.content, update.why) == (old, OLD, "1.50 instead of 1.00")
    assert trivet.links(new.id) == ()


def test_only_earlier_memories_of_same_scope_are_reported(trivet: Trivet) -> None:
    trivet.remember(OLD, scope="another/team")
    later = trivet.remember(OLD).id
    assert trivet.remember(NEW, created_at=LAST_YEAR).may_update == ()
    trivet.forget(later)
    assert trivet.remember(NEW).may_update == ()


def test_sensitive_update_is_reported_without_its_text(trivet: Trivet) -> None:
    old = trivet.remember("The vault code is 4090.", sensitive=True).id
    (update,) = trivet.remember("The vault code is 1177 now.").may_update
    assert update.id == old
    assert "4090" not in update.content + update.why


def test_changed_secret_is_reported_although_sealed(trivet: Trivet) -> None:
    old = trivet.remember("The vault code is 4090.").id
    (update,) = trivet.remember("The vault code is 1177 now.").may_update
    assert (update.id, update.why) == (old, "another secret on the same matter")


def test_batch_is_not_compared_on_save(trivet: Trivet) -> None:
    trivet.remember(OLD, created_at=LAST_YEAR)
    (stored,) = trivet.remember_many([{"content": NEW}])
    assert stored.may_update == ()


def test_supersedes_links_in_the_same_transaction(trivet: Trivet) -> None:
    old = trivet.remember(OLD, created_at=LAST_YEAR).id
    new = trivet.remember(NEW, supersedes=[old])
    assert new.may_update == ()
    assert [(link.kind, link.source, link.target) for link in trivet.links(new.id)] == [
        ("supersedes", new.id, old)
    ]
    (hit,) = trivet.recall("what does unlocking a bike cost").hits
    assert (hit.id, hit.why.redirected_from) == (new.id, (old,))


def test_invalid_supersedes_stores_nothing(trivet: Trivet) -> None:
    old = trivet.remember(OLD).id
    trivet.forget(old)
    with pytest.raises(Conflict):
        trivet.remember(NEW, supersedes=[old])
    with pytest.raises(NotFound):
        trivet.remember(NEW, supersedes=["0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"])
    assert trivet.list().total == 0


def test_newer_fact_ranks_first_and_names_the_older(trivet: Trivet) -> None:
    old = trivet.remember("Bike: unlocking a bike costs CHF 1.00.", created_at=LAST_YEAR).id
    new = trivet.remember(NEW).id
    first, second = trivet.recall("unlocking a bike costs").hits
    assert (first.id, first.why.newer_than) == (new, (old,))
    assert (second.id, second.why.older_than) == (old, new)
    assert first.score >= second.score
    assert first.relevance >= second.relevance


def test_past_question_ranks_the_older_first(trivet: Trivet) -> None:
    old = trivet.remember(OLD, created_at=LAST_YEAR).id
    new = trivet.remember(f"{NEW} Unlocking, unlocking.").id
    assert [hit.id for hit in trivet.recall("unlocking a bike").hits] == [new, old]
    assert [hit.id for hit in trivet.recall("unlocking a bike before").hits] == [old, new]


def test_newer_fact_beyond_the_limit_is_promoted(trivet: Trivet) -> None:
    old = trivet.remember(OLD, created_at=LAST_YEAR, importance=1.0).id
    trivet.remember(
        "Unlocking a bike costs patience.", source="poem.txt", importance=1.0, created_at=LAST_YEAR
    )
    new = trivet.remember(NEW, importance=0.0).id
    unordered = [hit.id for hit in trivet.recall("unlocking a bike costs", as_of="2030-01-01").hits]
    assert unordered.index(new) > unordered.index(old)
    (hit,) = trivet.recall("unlocking a bike costs CHF", limit=1).hits
    assert hit.id == new


def test_opposites_are_both_shown_newest_first(trivet: Trivet) -> None:
    old = trivet.remember("Always deploy on Friday.", created_at=LAST_YEAR).id
    new = trivet.remember("Never deploy on Friday.").id
    assert [hit.id for hit in trivet.recall("deploy on Friday").hits] == [new, old]


@pytest.mark.parametrize(
    ("query", "past"),
    [
        ("What did the day pass cost before?", True),
        ("where was the spare key at first", True),
        ("Did Greta use to like coriander?", True),
        ("Which port did it have in March?", True),
        ("who was tech lead before Ben", True),
        ("What does a day pass cost?", False),
        ("what was the decision on the public API", False),
        ("what do we sow in March", False),
    ],
)
def test_past_questions_are_recognized(query: str, past: bool) -> None:
    assert asks_about_past(query) is past


TREASURER = "Treasurer of the choir is Wilfried Opitz."
ELECTED = "The general meeting elected Samira Haddad as the new treasurer of the choir."


@pytest.fixture(autouse=True)
def _every_text_states_a_change() -> Iterator[None]:
    """Disable the rule of `test_change_statements.py`: the later text must state a change."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "EXPLICIT_CHANGE", re.compile(""))
        yield


@pytest.fixture
def trivet(open_trivet: Opened) -> Trivet:
    return open_trivet(changes="read")


@pytest.fixture
def bundled(open_trivet: Opened) -> Trivet:
    return open_trivet(embedder="bundled", rerank="off", changes="read")


def test_busy_save_compares_words_and_worker_reads_later(
    bundled: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled.remember(TREASURER, created_at=LAST_YEAR)
    bundled.drain()
    read: list[object] = []
    monkeypatch.setattr(verdict, "read", lambda *pairs: read.append(pairs))
    load = bundled.engine.load
    with ExitStack() as crowd:
        for _ in range(load.capacity + 1):
            crowd.enter_context(load.recall())
        bundled.remember(ELECTED)
        assert (load.shed_count, read) == (1, [])
    assert bundled.engine.store.likely_updates.pending() == 1
    monkeypatch.undo()
    bundled.drain()
    first, second = bundled.recall("who is the treasurer of the choir").hits
    assert (first.content, second.content, second.why.older_than) == (ELECTED, TREASURER, first.id)


def test_worker_waits_for_capacity_up_to_a_limit() -> None:
    load, stop = RecallLoad(processes=1_000), threading.Event()
    load.wait_for_capacity(stop, 60)  # No recall is running.
    with load.recall(), load.recall():
        load.wait_for_capacity(stop, 0)
        stop.set()
        load.wait_for_capacity(stop, 60)


def test_close_does_not_wait_for_comparison_slot(bundled: Trivet) -> None:
    """One tenant of a process compares at a time, and that may take long."""
    bundled.remember_many(
        {"content": text} for text in ("Maria owns the billing.", "Jonas owns the billing.")
    )
    engine, stop = bundled.engine, threading.Event()
    engine.worker.drain()
    comparison = compare.UpdateComparison(engine.store, engine.embedding)
    with compare._slot:
        waiter = threading.Thread(target=comparison.drain, args=(stop,), daemon=True)
        waiter.start()
        stop.set()
        waiter.join(60)
        assert not waiter.is_alive()
    assert comparison.drain(threading.Event()) == 2


def test_worker_stops_comparing_while_caller_waits_for_vectors(bundled: Trivet) -> None:
    bundled.remember_many({"content": text} for text in PORTS)
    worker, pending = bundled.engine.worker, bundled.engine.store.likely_updates.pending
    worker.drain()
    with worker._draining:  # Held as by a caller that drains.
        worker.compare(more_urgent=worker._has_new_work)
    assert pending() == len(PORTS) - 1, "one comparison per run guarantees progress"
    worker.wake()  # As after a save.
    worker.compare(more_urgent=worker._has_new_work)
    assert pending() == len(PORTS) - 2
    worker._woken.clear()
    worker.compare(more_urgent=worker._has_new_work)
    assert pending() == 0


def test_worker_compares_bulk_writes(bundled: Trivet) -> None:
    """The newer memory may be imported first."""
    (new,) = bundled.remember_many([{"content": ELECTED, "created_at": "2026-05-01"}])
    (old,) = bundled.remember_many([{"content": TREASURER, "created_at": LAST_YEAR}])
    bundled.drain()
    assert bundled.engine.store.likely_updates.pending() == 0
    first, second = bundled.recall("who is the treasurer of the choir").hits
    assert (first.id, second.id, second.why.older_than) == (new.id, old.id, new.id)


def test_worker_reads_what_a_save_had_no_time_for(
    bundled: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    olds = [bundled.remember(text, created_at=LAST_YEAR).id for text in PORTS]
    bundled.drain()
    readings: list[int] = []
    read = verdict.read

    def counted(new: str, older: Sequence[str], seconds: float) -> list[float]:
        readings.append(len(older))
        return read(new, older, seconds)

    monkeypatch.setattr(verdict, "read", counted)
    bundled.remember("The staging database now listens on port 5440.")
    updates = bundled.engine.store.likely_updates
    assert readings == [verdict.MAX_PAIRS_READ_ON_SAVE]
    assert len(updates.updates_of(olds)) <= verdict.MAX_PAIRS_READ_ON_SAVE
    assert updates.pending() == 1
    bundled.drain()
    assert readings == [verdict.MAX_PAIRS_READ_ON_SAVE, len(PORTS)]
    assert updates.pending() == 0
    assert {
        one.older
        for one in updates.updates_of(olds)
        if one.probability >= change_model().report_from
    } >= set(olds[:3])


def test_update_is_added_although_no_leg_found_it(bundled: Trivet) -> None:
    old = bundled.remember(TREASURER, created_at=LAST_YEAR).id
    bundled.remember_many(
        {"content": f"Choir rehearsal {number}: we sang."} for number in range(70)
    )
    new = bundled.remember("Samira Haddad now looks after the money.").id
    bundled.drain()
    store = bundled.engine.store
    by_id = store.memories.get_many([old, new])
    store.likely_updates.finish(by_id[new], [(by_id[new], by_id[old], 0.95)])
    found = [hit.id for hit in bundled.recall("who is treasurer of the choir", limit=3).hits]
    assert found[:2] == [new, old]
    narrowed = bundled.recall(
        "who is treasurer of the choir", limit=3, created_before="2026-01-01"
    ).hits
    assert new not in [hit.id for hit in narrowed]


@pytest.mark.parametrize(("probability", "promoted"), [(0.5, False), (0.95, True)])
def test_poorly_matching_update_is_promoted_only_if_certain(
    bundled: Trivet, probability: float, promoted: bool
) -> None:
    old = bundled.remember(TREASURER, created_at=LAST_YEAR).id
    for deputy in ("Ada", "Ben", "Cem"):
        bundled.remember(f"{deputy} was elected by the choir.", created_at=LAST_YEAR)
    new = bundled.remember("Graz is far away.").id
    bundled.drain()
    store = bundled.engine.store
    by_id = store.memories.get_many([old, new])
    store.likely_updates.finish(by_id[new], [(by_id[new], by_id[old], probability)])
    found = [
        hit.id
        for hit in bundled.recall("who is the treasurer of the choir", relevance_at_least=0.0).hits
    ]
    assert (found.index(new) < found.index(old)) is promoted


def store_update(trivet: Trivet, new: str, old: str, probability: float) -> None:
    """Store an update as the comparison would."""
    store = trivet.engine.store
    by_id = store.memories.get_many([old, new])
    store.likely_updates.finish(by_id[new], [(by_id[new], by_id[old], probability)])


@pytest.mark.parametrize(("probability", "promoted"), [(0.4, False), (0.46, True)])
def test_adjacent_update_is_promoted_near_even_odds(
    trivet: Trivet, probability: float, promoted: bool
) -> None:
    old = trivet.remember("The treasurer of the choir is Opitz.", created_at=LAST_YEAR).id
    new = trivet.remember("Haddad is treasurer of a club.").id
    store_update(trivet, new, old, probability)
    first, second = trivet.recall("who is the treasurer of the choir").hits
    assert second.score < 0.7 * first.score or promoted
    assert (first.id == new) is promoted


@pytest.mark.parametrize(
    ("query", "probability", "promoted"),
    [
        ("api rate limit", 0.95, True),
        ("api rate limit", 0.8, False),
        ("rate limit is 100", 0.95, False),
    ],
)
def test_missing_query_word_blocks_only_doubtful_updates(
    trivet: Trivet, query: str, probability: float, promoted: bool
) -> None:
    """A query that names a value looks for the memory that holds it."""
    old = trivet.remember("The API rate limit is 100 requests a minute.", created_at=LAST_YEAR).id
    new = trivet.remember("The rate limit was lifted to 250 requests a minute.").id
    store_update(trivet, new, old, probability)
    found = trivet.recall(query).hits
    assert (found[0].id == new) is promoted


def test_uncertain_update_missed_by_legs_ranks_behind_the_older(
    bundled: Trivet,
) -> None:
    old = bundled.remember("We use Jenkins for CI.", created_at=LAST_YEAR).id
    bundled.remember_many(
        {"content": f"Rehearsal {number} of the CI choir."} for number in range(20)
    )
    new = bundled.remember("All pipelines went to Buildkite.").id
    bundled.drain()
    store_update(bundled, new, old, 0.67)
    hits = bundled.recall("we use Jenkins", limit=3).hits
    assert [hit.id for hit in hits[:2]] == [old, new]
    assert (hits[0].why.older_than, hits[1].why.newer_than) == (new, (old,))


@pytest.mark.parametrize(("other_probability", "first"), [(0.999, "old"), (0.0, "new")])
def test_update_of_another_memory_must_match_nearly_as_well(
    trivet: Trivet, other_probability: float, first: str
) -> None:
    old = trivet.remember("The car-sharing card is in the drawer.", created_at=LAST_YEAR).id
    other = trivet.remember("We are going to buy a car.", created_at=LAST_YEAR).id
    new = trivet.remember("No car for us after all, we keep sharing.").id
    store_update(trivet, new, old, 0.95)
    store_update(trivet, new, other, other_probability)
    found = trivet.recall("where is the card of the drawer").hits
    assert found[0].id == {"old": old, "new": new}[first]


def test_past_question_promotes_only_the_likeliest_replaced(
    trivet: Trivet,
) -> None:
    old = trivet.remember("Daan works in Eindhoven.", created_at=LAST_YEAR).id
    bystander = trivet.remember("Kuiper looks after the back of Daan.").id
    new = trivet.remember("Daan works in Amsterdam now.").id
    store_update(trivet, new, old, 0.97)
    store_update(trivet, new, bystander, 0.6)
    found = [hit.id for hit in trivet.recall("where did Daan work before Amsterdam").hits]
    assert found[:2] == [old, new]


def test_best_matching_update_takes_the_place(
    trivet: Trivet,
) -> None:
    old = trivet.remember("The treasurer of the choir is Opitz.", created_at=LAST_YEAR).id
    new = trivet.remember(
        "Haddad is treasurer of the choir, newly elected.", created_at="2026-01-01"
    ).id
    noise = trivet.remember("The choir has a piano.", created_at="2026-02-01").id
    store_update(trivet, noise, old, 0.92)
    store_update(trivet, new, old, 0.92)
    hits = trivet.recall("who is the treasurer of the choir", relevance_at_least=0.0).hits
    assert [hit.id for hit in hits] == [new, old, noise]
    assert [hit.why.newer_than for hit in hits] == [(old,), (), ()]


def test_older_ranks_first_for_a_question_before_a_date(
    trivet: Trivet,
) -> None:
    old = trivet.remember("Card payments go through Adyen.", created_at="2025-02-18").id
    new = trivet.remember("Card payments go through Nets.", created_at="2025-09-24").id
    store_update(trivet, new, old, 0.9)
    hits = trivet.recall("who handled card payments before the switch in September 2025").hits
    assert [hit.id for hit in hits] == [old, new]


def test_rare_shared_word_triggers_comparison(
    bundled: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []

    def record(new: str, olds: Sequence[OlderText], *_: object) -> list[verdict.Verdict]:
        compared.extend(old.text for old in olds)
        return verdict.judge_by_features(new, olds)

    monkeypatch.setattr(compare, "judge_updates", record)
    old = "Orchestration remains on Airflow (MWAA)."
    bundled.remember_many(
        {"content": text} for text in (old, "The office plants are watered on Mondays.")
    )
    bundled.drain()
    bundled.remember(
        "After the vote Hamid set Dagster up, and MWAA was cancelled; thanks to all who brought cake."
    )
    assert compared == [old]


def test_pair_is_read_once() -> None:
    pair = ("The vault code is 1177 now.", "The vault code is 4090.")
    found = reader.read(pair[0], [pair[1]])
    no_time = -1.0
    assert reader.read(pair[0], [pair[1]], no_time) == found
    with pytest.raises(RerankerError):
        reader.read(pair[1], [pair[0]], no_time)


def test_failing_reader_is_reported_and_save_succeeds(
    bundled: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RerankerError("its file is gone")

    monkeypatch.setattr(verdict, "read", broken)
    bundled.remember(OLD, created_at=LAST_YEAR)
    assert bundled.remember(NEW).may_update
    assert bundled.stats().last_error == "its file is gone"


@pytest.mark.parametrize("query", ["who is my dentist", "dentist"])
def test_question_with_one_matching_word_is_a_question(bundled: Trivet, query: str) -> None:
    old = bundled.remember("My dentist is Dr. Keller.", created_at=LAST_YEAR).id
    new = bundled.remember("I changed dentists: Dr. Amato now.").id
    bundled.drain()
    first = bundled.recall(query).hits[0].id
    assert first == (new if " " in query else old), "a lone word is not a question about a fact"


def test_unrelated_text_is_not_compared_despite_high_cosines(
    bundled: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []

    def record(new: str, olds: Sequence[OlderText], *_: object) -> list[verdict.Verdict]:
        compared.extend(old.text for old in olds)
        return verdict.judge_by_features(new, olds)

    monkeypatch.setattr(compare, "judge_updates", record)
    bundled.remember("The office plants are watered on Mondays.")
    bundled.drain()
    bundled.remember("Ines files the quarterly VAT return.")
    assert not compared
    embedding = bundled.engine.embedding
    monkeypatch.setattr(embedding, "background", lambda _: UNMEASURED_BASELINE)
    bundled.remember("The museum closes at six.")
    assert compared, "without a baseline, cosines of .5 seem near"


def test_comparison_can_use_words_only_or_be_off(
    open_trivet: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise AssertionError("the model was called")

    monkeypatch.setattr(verdict, "read", broken)
    words, off = open_trivet(changes="words"), open_trivet(changes="off")
    words.remember("We use feature flags for every change.", created_at=LAST_YEAR)
    assert off.remember("We no longer use feature flags.").may_update == ()
    assert words.remember("We no longer use feature flags.").may_update


def test_save_succeeds_when_similarity_lookup_fails(
    trivet: Trivet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The database fails after the commit, so an error would wrongly report a failed write."""

    def gone(*_: object) -> tuple[str, ...]:
        raise StoreError("The connection is lost. Nothing was written.")

    monkeypatch.setattr(trivet.engine.store.lexical, "similar", gone)
    stored = trivet.remember("Always deploy on Friday.")
    assert (stored.status, stored.near_duplicates, stored.may_update) == ("stored", (), ())
    assert trivet.get(stored.id).content == "Always deploy on Friday."
    assert "The connection is lost" in caplog.text
