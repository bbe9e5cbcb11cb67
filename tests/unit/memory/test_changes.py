"""Facts that change: told on save, linked only by the caller, and the later first in an answer."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest

from support.opened import Opened
from trivet import Conflict, NotFound, Trivet
from trivet.dates.past import asks_about_past
from trivet.errors import RerankerError, StoreError
from trivet.memory.supersession import compare, verdict, words
from trivet.memory.supersession import verdict as reader
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
def test_another_value_of_the_same_thing_is_an_update(old: str, new: str) -> None:
    assert judge_updates(new, [OlderText(old)])[0].probability >= change_model().told


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
def test_the_same_of_another_thing_is_none(old: str, new: str) -> None:
    assert judge_updates(new, [OlderText(old)])[0].probability < change_model().told


def test_what_a_memory_may_update_is_told_and_not_linked(trivet: Trivet) -> None:
    old = trivet.remember(OLD, created_at=LAST_YEAR).id
    trivet.remember("Anna's birthday is on 4 May.")
    new = trivet.remember(NEW)
    (update,) = new.may_update
    assert (update.id, update.content, update.why) == (old, OLD, "1.50 instead of 1.00")
    assert trivet.links(new.id) == ()


def test_only_earlier_memories_of_the_same_scope_are_told(trivet: Trivet) -> None:
    trivet.remember(OLD, scope="another/team")
    later = trivet.remember(OLD).id
    assert trivet.remember(NEW, created_at=LAST_YEAR).may_update == ()
    trivet.forget(later)
    assert trivet.remember(NEW).may_update == ()


def test_a_sensitive_memory_is_told_without_its_words(trivet: Trivet) -> None:
    old = trivet.remember("The vault code is 4090.", sensitive=True).id
    (update,) = trivet.remember("The vault code is 1177 now.").may_update
    assert update.id == old
    assert "4090" not in update.content + update.why


def test_a_secret_that_changed_is_told_though_both_are_sealed(trivet: Trivet) -> None:
    old = trivet.remember("The vault code is 4090.").id
    (update,) = trivet.remember("The vault code is 1177 now.").may_update
    assert (update.id, update.why) == (old, "another secret on the same matter")


def test_a_batch_is_not_looked_at(trivet: Trivet) -> None:
    trivet.remember(OLD, created_at=LAST_YEAR)
    (stored,) = trivet.remember_many([{"content": NEW}])
    assert stored.may_update == ()


def test_what_it_supersedes_is_linked_in_the_same_transaction(trivet: Trivet) -> None:
    old = trivet.remember(OLD, created_at=LAST_YEAR).id
    new = trivet.remember(NEW, supersedes=[old])
    assert new.may_update == ()
    assert [(link.kind, link.source, link.target) for link in trivet.links(new.id)] == [
        ("supersedes", new.id, old)
    ]
    (hit,) = trivet.recall("what does unlocking a bike cost").hits
    assert (hit.id, hit.why.redirected_from) == (new.id, (old,))


def test_an_unknown_or_forgotten_one_to_supersede_stores_nothing(trivet: Trivet) -> None:
    old = trivet.remember(OLD).id
    trivet.forget(old)
    with pytest.raises(Conflict):
        trivet.remember(NEW, supersedes=[old])
    with pytest.raises(NotFound):
        trivet.remember(NEW, supersedes=["0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"])
    assert trivet.list().total == 0


def test_the_later_stands_first_and_the_earlier_says_so(trivet: Trivet) -> None:
    old = trivet.remember("Bike: unlocking a bike costs CHF 1.00.", created_at=LAST_YEAR).id
    new = trivet.remember(NEW).id
    first, second = trivet.recall("unlocking a bike costs").hits
    assert (first.id, first.why.newer_than) == (new, (old,))
    assert (second.id, second.why.older_than) == (old, new)
    assert first.score >= second.score
    assert first.relevance >= second.relevance


def test_asked_about_the_past_the_earlier_stands_first(trivet: Trivet) -> None:
    old = trivet.remember(OLD, created_at=LAST_YEAR).id
    new = trivet.remember(f"{NEW} Unlocking, unlocking.").id
    assert [hit.id for hit in trivet.recall("unlocking a bike").hits] == [new, old]
    assert [hit.id for hit in trivet.recall("unlocking a bike before").hits] == [old, new]


def test_a_later_one_behind_the_limit_is_lifted(trivet: Trivet) -> None:
    old = trivet.remember(OLD, created_at=LAST_YEAR, importance=1.0).id
    trivet.remember(
        "Unlocking a bike costs patience.", source="poem.txt", importance=1.0, created_at=LAST_YEAR
    )
    new = trivet.remember(NEW, importance=0.0).id
    unordered = [hit.id for hit in trivet.recall("unlocking a bike costs", as_of="2030-01-01").hits]
    assert unordered.index(new) > unordered.index(old)
    (hit,) = trivet.recall("unlocking a bike costs CHF", limit=1).hits
    assert hit.id == new


def test_opposites_are_both_shown_the_later_first(trivet: Trivet) -> None:
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
def test_which_questions_ask_about_the_past(query: str, past: bool) -> None:
    assert asks_about_past(query) is past


TREASURER = "Treasurer of the choir is Wilfried Opitz."
ELECTED = "The general meeting elected Samira Haddad as the new treasurer of the choir."


@pytest.fixture(autouse=True)
def every_text_states_a_change() -> Iterator[None]:
    """Lift the rule that the later text must state a change; `test_stated_changes.py` tests that rule."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "EXPLICIT_CHANGE", re.compile(""))
        yield


@pytest.fixture
def trivet(open_trivet: Opened) -> Trivet:
    return open_trivet(changes="read")


@pytest.fixture
def bundled(open_trivet: Opened) -> Trivet:
    return open_trivet(embedder="bundled", rerank="off", changes="read")


def test_in_a_crowd_a_save_compares_words_and_the_worker_reads_later(
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


def test_the_worker_waits_for_room_and_not_for_ever() -> None:
    load, stop = RecallLoad(processes=1_000), threading.Event()
    load.wait_for_capacity(stop, 60)  # nobody is at work
    with load.recall(), load.recall():
        load.wait_for_capacity(stop, 0)
        stop.set()
        load.wait_for_capacity(stop, 60)


def test_a_store_that_closes_does_not_wait_for_its_turn_to_compare(bundled: Trivet) -> None:
    """Of several tenants in a process one compares at a time; another one's turn may last."""
    bundled.remember_many(
        {"content": text} for text in ("Maria owns the billing.", "Jonas owns the billing.")
    )
    engine, stop = bundled.engine, threading.Event()
    engine.worker.drain()
    comparison = compare.UpdateComparison(engine.store, engine.embedding)
    with compare._slot:
        waiting = threading.Thread(target=comparison.drain, args=(stop,), daemon=True)
        waiting.start()
        stop.set()
        waiting.join(60)
        assert not waiting.is_alive()
    assert comparison.drain(threading.Event()) == 2


def test_the_worker_compares_no_further_while_a_caller_waits_for_vectors(bundled: Trivet) -> None:
    bundled.remember_many({"content": text} for text in PORTS)
    worker, pending = bundled.engine.worker, bundled.engine.store.likely_updates.pending
    worker.drain()
    with worker._draining:  # as a caller who drains has it
        worker.compare(more_urgent=worker._has_new_work)
    assert pending() == len(PORTS) - 1, "one, so that there is some headway"
    worker.wake()  # something was saved
    worker.compare(more_urgent=worker._has_new_work)
    assert pending() == len(PORTS) - 2
    worker._woken.clear()
    worker.compare(more_urgent=worker._has_new_work)
    assert pending() == 0


def test_what_came_in_numbers_is_compared_by_the_worker(bundled: Trivet) -> None:
    """Also where the later came in first."""
    (new,) = bundled.remember_many([{"content": ELECTED, "created_at": "2026-05-01"}])
    (old,) = bundled.remember_many([{"content": TREASURER, "created_at": LAST_YEAR}])
    bundled.drain()
    assert bundled.engine.store.likely_updates.pending() == 0
    first, second = bundled.recall("who is the treasurer of the choir").hits
    assert (first.id, second.id, second.why.older_than) == (new.id, old.id, new.id)


def test_what_a_save_has_no_time_to_read_the_worker_reads(
    bundled: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By first sight alone nothing is kept of what will be read."""
    olds = [bundled.remember(text, created_at=LAST_YEAR).id for text in PORTS]
    bundled.drain()
    readings: list[int] = []

    def counted(new: str, older: Sequence[str], seconds: float) -> list[float]:
        readings.append(len(older))
        return reader.read(new, older, seconds)

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
        one.older for one in updates.updates_of(olds) if one.probability >= change_model().told
    } >= set(olds[:3])


def test_what_updates_a_hit_comes_along_although_no_leg_found_it(bundled: Trivet) -> None:
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


@pytest.mark.parametrize(("probability", "lifted"), [(0.5, False), (0.95, True)])
def test_a_later_one_that_hardly_answers_takes_the_place_only_where_it_is_sure(
    bundled: Trivet, probability: float, lifted: bool
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
    assert (found.index(new) < found.index(old)) is lifted


def note(trivet: Trivet, new: str, old: str, probability: float) -> None:
    """As if the comparison had found it."""
    store = trivet.engine.store
    by_id = store.memories.get_many([old, new])
    store.likely_updates.finish(by_id[new], [(by_id[new], by_id[old], probability)])


@pytest.mark.parametrize(("probability", "lifted"), [(0.4, False), (0.46, True)])
def test_a_later_one_directly_behind_takes_the_place_where_the_update_is_nearly_as_likely_as_not(
    trivet: Trivet, probability: float, lifted: bool
) -> None:
    old = trivet.remember("The treasurer of the choir is Opitz.", created_at=LAST_YEAR).id
    new = trivet.remember("Haddad is treasurer of a club.").id
    note(trivet, new, old, probability)
    first, second = trivet.recall("who is the treasurer of the choir").hits
    assert second.score < 0.7 * first.score or lifted
    assert (first.id == new) is lifted


@pytest.mark.parametrize(
    ("query", "probability", "lifted"),
    [
        ("api rate limit", 0.95, True),
        ("api rate limit", 0.8, False),
        ("rate limit is 100", 0.95, False),
    ],
)
def test_a_word_that_the_later_one_leaves_out_keeps_the_earlier_in_front_only_where_the_update_is_doubtful(
    trivet: Trivet, query: str, probability: float, lifted: bool
) -> None:
    """Who names a value looks for where it stands."""
    old = trivet.remember("The API rate limit is 100 requests a minute.", created_at=LAST_YEAR).id
    new = trivet.remember("The rate limit was lifted to 250 requests a minute.").id
    note(trivet, new, old, probability)
    found = trivet.recall(query).hits
    assert (found[0].id == new) is lifted


def test_a_later_one_that_no_leg_found_and_that_is_not_quite_sure_comes_along_behind_what_it_seems_to_update(
    bundled: Trivet,
) -> None:
    old = bundled.remember("We use Jenkins for CI.", created_at=LAST_YEAR).id
    bundled.remember_many(
        {"content": f"Rehearsal {number} of the CI choir."} for number in range(20)
    )
    new = bundled.remember("All pipelines went to Buildkite.").id
    bundled.drain()
    note(bundled, new, old, 0.67)
    hits = bundled.recall("we use Jenkins", limit=3).hits
    assert [hit.id for hit in hits[:2]] == [old, new]
    assert (hits[0].why.older_than, hits[1].why.newer_than) == (new, (old,))


@pytest.mark.parametrize(("surer", "first"), [(0.999, "old"), (0.0, "new")])
def test_what_surely_updates_another_memory_must_answer_nearly_as_well_to_stand_before_this_one(
    trivet: Trivet, surer: float, first: str
) -> None:
    old = trivet.remember("The car-sharing card is in the drawer.", created_at=LAST_YEAR).id
    other = trivet.remember("We are going to buy a car.", created_at=LAST_YEAR).id
    new = trivet.remember("No car for us after all, we keep sharing.").id
    note(trivet, new, old, 0.95)
    note(trivet, new, other, surer)
    found = trivet.recall("where is the card of the drawer").hits
    assert found[0].id == {"old": old, "new": new}[first]


def test_asked_about_the_past_only_what_was_most_likely_replaced_stands_before_the_later(
    trivet: Trivet,
) -> None:
    old = trivet.remember("Daan works in Eindhoven.", created_at=LAST_YEAR).id
    bystander = trivet.remember("Kuiper looks after the back of Daan.").id
    new = trivet.remember("Daan works in Amsterdam now.").id
    note(trivet, new, old, 0.97)
    note(trivet, new, bystander, 0.6)
    found = [hit.id for hit in trivet.recall("where did Daan work before Amsterdam").hits]
    assert found[:2] == [old, new]


def test_of_several_that_seem_to_update_a_memory_the_one_that_answers_best_takes_its_place(
    trivet: Trivet,
) -> None:
    old = trivet.remember("The treasurer of the choir is Opitz.", created_at=LAST_YEAR).id
    new = trivet.remember(
        "Haddad is treasurer of the choir, newly elected.", created_at="2026-01-01"
    ).id
    noise = trivet.remember("The choir has a piano.", created_at="2026-02-01").id
    note(trivet, noise, old, 0.92)
    note(trivet, new, old, 0.92)
    hits = trivet.recall("who is the treasurer of the choir", relevance_at_least=0.0).hits
    assert [hit.id for hit in hits] == [new, old, noise]
    assert [hit.why.newer_than for hit in hits] == [(old,), (), ()]


def test_asked_what_was_before_a_time_the_earlier_stands_first_although_the_later_is_of_that_time(
    trivet: Trivet,
) -> None:
    old = trivet.remember("Card payments go through Adyen.", created_at="2025-02-18").id
    new = trivet.remember("Card payments go through Nets.", created_at="2025-09-24").id
    note(trivet, new, old, 0.9)
    hits = trivet.recall("who handled card payments before the switch in September 2025").hits
    assert [hit.id for hit in hits] == [old, new]


def test_what_names_the_replaced_thing_by_a_rare_word_is_compared_however_far_it_is_otherwise(
    bundled: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []

    def noted(new: str, olds: Sequence[OlderText], *_: object) -> list[verdict.Verdict]:
        compared.extend(old.text for old in olds)
        return verdict.judge_by_features(new, olds)

    monkeypatch.setattr(compare, "judge_updates", noted)
    old = "Orchestration remains on Airflow (MWAA)."
    bundled.remember_many(
        {"content": text} for text in (old, "The office plants are watered on Mondays.")
    )
    bundled.drain()
    bundled.remember(
        "After the vote Hamid set Dagster up, and MWAA was cancelled; thanks to all who brought cake."
    )
    assert compared == [old]


def test_two_statements_are_read_once() -> None:
    pair = ("The vault code is 1177 now.", "The vault code is 4090.")
    found = reader.read(pair[0], [pair[1]])
    no_time = -1.0
    assert reader.read(pair[0], [pair[1]], no_time) == found
    with pytest.raises(RerankerError):
        reader.read(pair[1], [pair[0]], no_time)


def test_a_reader_that_cannot_read_costs_the_save_nothing_and_is_told(
    bundled: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RerankerError("its file is gone")

    monkeypatch.setattr(verdict, "read", broken)
    bundled.remember(OLD, created_at=LAST_YEAR)
    assert bundled.remember(NEW).may_update
    assert bundled.stats().last_error == "its file is gone"


@pytest.mark.parametrize("query", ["who is my dentist", "dentist"])
def test_a_question_of_one_word_that_memories_are_found_by_is_a_question(
    bundled: Trivet, query: str
) -> None:
    old = bundled.remember("My dentist is Dr. Keller.", created_at=LAST_YEAR).id
    new = bundled.remember("I changed dentists: Dr. Amato now.").id
    bundled.drain()
    first = bundled.recall(query).hits[0].id
    assert first == (new if " " in query else old), (
        "a lone word looks for a place and asks for no fact"
    )


def test_what_is_unrelated_is_not_compared_however_high_the_cosines_of_a_model_are(
    bundled: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []

    def noted(new: str, olds: Sequence[OlderText], *_: object) -> list[verdict.Verdict]:
        compared.extend(old.text for old in olds)
        return verdict.judge_by_features(new, olds)

    monkeypatch.setattr(compare, "judge_updates", noted)
    bundled.remember("The office plants are watered on Mondays.")
    bundled.drain()
    bundled.remember("Ines files the quarterly VAT return.")
    assert not compared
    embedding = bundled.engine.embedding
    monkeypatch.setattr(embedding, "background", lambda _: UNMEASURED_BASELINE)
    bundled.remember("The museum closes at six.")
    assert compared, "taken as they are, cosines of .5 seem near"


def test_it_can_be_left_to_words_or_be_switched_off(
    open_trivet: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise AssertionError("the model was asked")

    monkeypatch.setattr(verdict, "read", broken)
    words, off = open_trivet(changes="words"), open_trivet(changes="off")
    words.remember("We use feature flags for every change.", created_at=LAST_YEAR)
    assert off.remember("We no longer use feature flags.").may_update == ()
    assert words.remember("We no longer use feature flags.").may_update


def test_a_write_is_acknowledged_although_what_is_like_it_cannot_be_looked_up(
    trivet: Trivet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The database went away after the commit: an error would say that nothing was written."""

    def gone(*_: object) -> tuple[str, ...]:
        raise StoreError("The connection is lost. Nothing was written.")

    monkeypatch.setattr(trivet.engine.store.lexical, "similar", gone)
    stored = trivet.remember("Always deploy on Friday.")
    assert (stored.status, stored.near_duplicates, stored.may_update) == ("stored", (), ())
    assert trivet.get(stored.id).content == "Always deploy on Friday."
    assert "The connection is lost" in caplog.text
