"""Recall with a time in the question: a preference with a reason, by a clock that the test sets."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from trivet import Trivet
from trivet.common.clock import clock_fixed_at
from trivet.search import memory_times as said
from trivet.search.memory_times import MentionedTime
from trivet.store.relational.tables.memories import Memories
from trivet.types import Hit, Memory

LAST_WEEK = "'last week' (2-8 November 2026)"


@pytest.fixture(autouse=True)
def _on_sunday_15_november_2026() -> Iterator[None]:
    with clock_fixed_at("2026-11-15T10:00:00Z"):
        yield


def recalled(trivet: Trivet, query: str, **options: object) -> dict[str, Hit]:
    options = {"relevance_at_least": 0.0, **options}
    return {hit.id: hit for hit in trivet.recall(query, **options).hits}  # type: ignore[arg-type]


def told(trivet: Trivet, content: str, created_at: str, **fields: object) -> str:
    return trivet.remember(content, created_at=created_at, **fields).id  # type: ignore[arg-type]


def test_what_was_written_in_the_time_comes_first_and_says_why(trivet: Trivet) -> None:
    old = told(trivet, "We decide, and decide again: the logo is green.", "2026-10-02T09:00:00Z")
    asked = told(
        trivet,
        "At the meeting of the team we had to decide: tea is bought by Ana.",
        "2026-11-05T09:00:00Z",
    )
    assert list(recalled(trivet, "what did we decide")) == [old, asked]
    hits = recalled(trivet, "what did we decide last week")
    assert list(hits) == [asked, old]
    assert (hits[asked].why.time, hits[asked].why.time_factor) == (f"written in {LAST_WEEK}", 1.0)
    assert hits[old].why.time is None
    assert hits[old].why.time_factor == pytest.approx(1 - 0.9 / (1 + 1 / 8))
    assert hits[asked].why.matched_words == ("decide",)


def test_what_belongs_to_the_time_is_likelier_to_be_relevant(trivet: Trivet) -> None:
    id = told(
        trivet,
        "At the meeting of the team we had to decide: tea is bought by Ana.",
        "2026-11-05T09:00:00Z",
    )
    then, any_time = (
        recalled(trivet, "what did we decide last week")[id],
        recalled(trivet, "what did we decide")[id],
    )
    assert any_time.relevance < then.relevance < 1


def test_the_fewer_belong_to_the_time_the_more_it_says(trivet: Trivet) -> None:
    id = told(trivet, "We had to decide: tea is bought by Ana.", "2026-11-05T09:00:00Z")
    for day in range(1, 10):
        told(trivet, f"We had to decide on item {day}.", f"2026-01-0{day}T09:00:00Z")
    week, year = (
        recalled(trivet, f"what did we decide {when}")[id] for when in ("last week", "this year")
    )
    assert week.relevance > year.relevance


def test_the_same_question_a_month_later_means_another_week(trivet: Trivet) -> None:
    first = told(trivet, "We decide on tea.", "2026-11-05T09:00:00Z")
    second = told(trivet, "We decide on tea and on cake and on biscuits.", "2026-12-03T09:00:00Z")
    assert next(iter(recalled(trivet, "what did we decide last week"))) == first
    with clock_fixed_at("2026-12-09T10:00:00Z"):
        assert next(iter(recalled(trivet, "what did we decide last week"))) == second


def test_a_date_in_the_text_counts_as_it_was_meant_when_it_was_written(trivet: Trivet) -> None:
    spelled = told(
        trivet, "The dentist has time for Cian on 17 November at 16:15.", "2026-09-01T09:00:00Z"
    )
    pointed = told(
        trivet,
        "The dentist has time for Fergal, who forgot it, on Tuesday.",
        "2026-11-13T09:00:00Z",
    )
    other = told(trivet, "The dentist has time.", "2026-11-12T09:00:00Z")
    year = told(trivet, "The dentist has time in 2026.", "2026-01-12T09:00:00Z")
    hits = recalled(trivet, "dentist this coming Tuesday")
    assert set(list(hits)[:2]) == {spelled, pointed}
    assert hits[spelled].why.time == "names a time in 'this coming Tuesday' (17 November 2026)"
    assert hits[pointed].why.time is not None
    assert hits[other].why.time is hits[year].why.time is None


def test_a_question_about_a_time_reads_no_text_for_the_times_that_it_names(
    trivet: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"title": "On Tuesday", "created_at": "2026-11-13T09:00:00Z"}
    id = told(trivet, "The dentist has time for Cian.", **fields)
    edited = told(trivet, "The dentist has no time.", "2026-09-01T09:00:00Z")
    trivet.edit(edited, content="The dentist has time on 17 November at 16:15.")
    expected = {
        id: recalled(trivet, "dentist this coming Tuesday")[id].why.time for id in (id, edited)
    }
    assert None not in expected.values()

    def read(text: str, *_: object) -> tuple[MentionedTime, ...]:
        raise AssertionError(f"{text!r} was read for times")

    monkeypatch.setattr(said, "_read", read)
    hits = recalled(trivet, "dentist this coming Tuesday please")
    assert {id: hits[id].why.time for id in expected} == expected


def test_of_much_that_was_found_what_can_come_first_is_read(
    trivet: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(44):
        told(
            trivet,
            f"The plan of the fair: stall {number}" + f" stall {number}" * number,
            "2026-10-02T09:00:00Z",
        )
    last = told(
        trivet,
        f"On 5 November we had a plan of the fair and {'something else ' * 60}",
        "2026-10-02T09:00:00Z",
    )
    read: set[str] = set()
    get_many = Memories.get_many

    def noted(memories: Memories, ids: Sequence[str]) -> dict[str, Memory]:
        read.update(ids)
        return get_many(memories, ids)

    monkeypatch.setattr(Memories, "get_many", noted)
    hits = recalled(trivet, "the plan of the fair last week", limit=3)
    assert hits[last].why.time == f"names a time in {LAST_WEEK}"
    assert len(hits) == 3
    assert len(read) < 35
    assert list(hits) == list(recalled(trivet, "the plan of the fair last week", limit=45))[:3]


def test_memories_of_an_earlier_version_are_read_for_their_times(
    trivet: Trivet, path: Path
) -> None:
    told(trivet, "The dentist has no time.", "2026-09-01T09:00:00Z")
    id = told(trivet, "The dentist has time on 17 November at 16:15.", "2026-09-01T09:00:00Z")
    expected = recalled(trivet, "dentist this coming Tuesday")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE memory SET times = NULL")
        connection.commit()
    assert recalled(trivet, "dentist this coming Tuesday") == expected
    assert expected[id].why.time is not None


def test_what_comes_every_year_is_of_every_year(trivet: Trivet) -> None:
    id = told(trivet, "Bring a jumper between October and April.", "2025-02-01T09:00:00Z")
    other = told(trivet, "A jumper", "2025-05-01T09:00:00Z")
    hits = recalled(trivet, "bring a jumper between October and April")
    assert hits[id].why.time is not None
    assert hits[other].why.time is None


def test_when_it_became_true_counts_too(trivet: Trivet) -> None:
    id = told(trivet, "The price of a ride is two francs.", "2026-06-01", valid_from="2026-11-03")
    told(trivet, "The price of a ride", "2026-06-01")
    assert (
        recalled(trivet, "price of a ride last week")[id].why.time == f"became true in {LAST_WEEK}"
    )


def test_it_is_no_filter_and_the_minimum_score_does_not_make_it_one(trivet: Trivet) -> None:
    ids = {
        told(trivet, f"We decide on tea {day}.", f"2026-11-{day:02}T09:00:00Z") for day in (1, 5, 9)
    }
    assert set(recalled(trivet, "decide tea last week")) == ids
    plain = recalled(trivet, "decide tea", minimum_score=0.5)
    assert set(recalled(trivet, "decide tea last week", minimum_score=0.5)) == set(plain) == ids


def test_where_nothing_is_of_the_time_nothing_changes_and_a_note_says_so(trivet: Trivet) -> None:
    told(trivet, "We decide on tea.", "2026-10-01T09:00:00Z")
    answer = trivet.recall("what did we decide last week")
    plain = trivet.recall("what did we decide")
    assert [hit.score for hit in answer.hits] == [hit.score for hit in plain.hits]
    assert f"nothing that was found is of {LAST_WEEK}" in answer.health.notes
    assert plain.health.notes == ()


def test_what_no_leg_would_reach_takes_part_if_it_is_of_the_time(trivet: Trivet) -> None:
    for number in range(8):
        told(trivet, f"Decide {number}.", "2026-10-02T09:00:00Z")
    asked = told(
        trivet,
        "A long text about the garden, the fence and what else we had to decide.",
        "2026-11-05T09:00:00Z",
    )
    shallow = "depth(3)"
    assert asked not in recalled(trivet, "what did we decide", recipe=shallow)
    assert next(iter(recalled(trivet, "what did we decide last week", recipe=shallow))) == asked
    assert asked not in recalled(
        trivet, "what did we decide last week", recipe=f"{shallow} | time(0)"
    )
    # A filter of the caller holds as ever.
    assert asked not in recalled(
        trivet, "what did we decide last week", created_before="2026-11-01"
    )


def test_words_that_point_to_a_time_are_not_searched_for_yet_not_lost(trivet: Trivet) -> None:
    literal = told(
        trivet, "Last week, the last week, was the last week of the fair.", "2025-03-01T09:00:00Z"
    )
    asked = told(trivet, "The fence broke in the storm.", "2026-11-05T09:00:00Z")
    hits = recalled(trivet, "what broke last week")
    assert list(hits) == [asked, literal]
    assert hits[literal].score < hits[asked].score / 2


def test_the_time_of_an_event_is_looked_up_in_the_store(trivet: Trivet) -> None:
    told(trivet, "The launch was on 3 March 2026. It went well.", "2026-03-05T09:00:00Z")
    before = told(
        trivet, "For payments and invoices of customers we use Adyen.", "2026-02-01T09:00:00Z"
    )
    after = told(trivet, "Payments: Stripe.", "2026-06-01T09:00:00Z")
    hits = recalled(trivet, "who did the payments before the launch?")
    assert hits[before].why.time == "written in 'before the launch' (before 3 March 2026)"
    assert hits[after].why.time is None
    assert list(hits).index(before) < list(hits).index(after)
    # What must be done is no question about a time, and of another event no day is known.
    assert all(
        hit.why.time is None
        for hit in recalled(trivet, "check the payments before the launch").values()
    )
    assert all(
        hit.why.time is None
        for hit in recalled(trivet, "who did the payments before the move?").values()
    )


def test_filters_take_the_same_words(trivet: Trivet) -> None:
    old = told(trivet, "tea", "60d")
    new = told(trivet, "cake", "yesterday", valid_to="+7d")
    assert trivet.get(new).created_at == datetime(2026, 11, 14, tzinfo=UTC)
    assert trivet.get(new).valid_to == datetime(2026, 11, 22, 10, tzinfo=UTC)
    assert [memory.id for memory in trivet.list(created_after="7d").memories] == [new]
    assert [memory.id for memory in trivet.list(created_after="2026-11").memories] == [new]
    assert [memory.id for memory in trivet.list(created_before="2026-11").memories] == [old]
    assert list(recalled(trivet, "tea cake", created_before="last monday")) == [old]


def test_why_not_tells_that_it_is_not_of_the_time(trivet: Trivet) -> None:
    other = told(trivet, "We decide on tea.", "2026-10-01T09:00:00Z")
    told(trivet, "We decide on cake.", "2026-11-05T09:00:00Z")
    explained = trivet.why_not("what did we decide last week", other, limit=1)
    assert f"it is not of {LAST_WEEK}; what is, counts more" in explained.reasons
