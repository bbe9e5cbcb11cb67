"""A time in the query is a preference with a reason, relative to a fixed clock."""

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


def remember_at(trivet: Trivet, content: str, created_at: str, **fields: object) -> str:
    return trivet.remember(content, created_at=created_at, **fields).id  # type: ignore[arg-type]


def test_memory_written_in_the_period_ranks_first(trivet: Trivet) -> None:
    old = remember_at(
        trivet, "We decide, and decide again: the logo is green.", "2026-10-02T09:00:00Z"
    )
    asked = remember_at(
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


def test_matching_the_period_raises_relevance(trivet: Trivet) -> None:
    id = remember_at(
        trivet,
        "At the meeting of the team we had to decide: tea is bought by Ana.",
        "2026-11-05T09:00:00Z",
    )
    then, any_time = (
        recalled(trivet, "what did we decide last week")[id],
        recalled(trivet, "what did we decide")[id],
    )
    assert any_time.relevance < then.relevance < 1


def test_rarer_period_raises_relevance_more(trivet: Trivet) -> None:
    id = remember_at(trivet, "We had to decide: tea is bought by Ana.", "2026-11-05T09:00:00Z")
    for day in range(1, 10):
        remember_at(trivet, f"We had to decide on item {day}.", f"2026-01-0{day}T09:00:00Z")
    week, year = (
        recalled(trivet, f"what did we decide {when}")[id] for when in ("last week", "this year")
    )
    assert week.relevance > year.relevance


def test_relative_time_follows_the_clock(trivet: Trivet) -> None:
    first = remember_at(trivet, "We decide on tea.", "2026-11-05T09:00:00Z")
    second = remember_at(
        trivet, "We decide on tea and on cake and on biscuits.", "2026-12-03T09:00:00Z"
    )
    assert next(iter(recalled(trivet, "what did we decide last week"))) == first
    with clock_fixed_at("2026-12-09T10:00:00Z"):
        assert next(iter(recalled(trivet, "what did we decide last week"))) == second


def test_date_in_text_is_relative_to_its_creation(trivet: Trivet) -> None:
    spelled = remember_at(
        trivet, "The dentist has time for Cian on 17 November at 16:15.", "2026-09-01T09:00:00Z"
    )
    pointed = remember_at(
        trivet,
        "The dentist has time for Fergal, who forgot it, on Tuesday.",
        "2026-11-13T09:00:00Z",
    )
    other = remember_at(trivet, "The dentist has time.", "2026-11-12T09:00:00Z")
    year = remember_at(trivet, "The dentist has time in 2026.", "2026-01-12T09:00:00Z")
    hits = recalled(trivet, "dentist this coming Tuesday")
    assert set(list(hits)[:2]) == {spelled, pointed}
    assert hits[spelled].why.time == "names a time in 'this coming Tuesday' (17 November 2026)"
    assert hits[pointed].why.time is not None
    assert hits[other].why.time is hits[year].why.time is None


def test_time_query_reads_stored_times_not_texts(
    trivet: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"title": "On Tuesday", "created_at": "2026-11-13T09:00:00Z"}
    id = remember_at(trivet, "The dentist has time for Cian.", **fields)
    edited = remember_at(trivet, "The dentist has no time.", "2026-09-01T09:00:00Z")
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


def test_time_query_reads_only_possible_top_hits(
    trivet: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(44):
        remember_at(
            trivet,
            f"The plan of the fair: stall {number}" + f" stall {number}" * number,
            "2026-10-02T09:00:00Z",
        )
    last = remember_at(
        trivet,
        f"On 5 November we had a plan of the fair and {'something else ' * 60}",
        "2026-10-02T09:00:00Z",
    )
    read: set[str] = set()
    get_many = Memories.get_many

    def record(memories: Memories, ids: Sequence[str]) -> dict[str, Memory]:
        read.update(ids)
        return get_many(memories, ids)

    monkeypatch.setattr(Memories, "get_many", record)
    hits = recalled(trivet, "the plan of the fair last week", limit=3)
    assert hits[last].why.time == f"names a time in {LAST_WEEK}"
    assert len(hits) == 3
    assert len(read) < 35
    assert list(hits) == list(recalled(trivet, "the plan of the fair last week", limit=45))[:3]


def test_memories_without_stored_times_are_read(trivet: Trivet, path: Path) -> None:
    remember_at(trivet, "The dentist has no time.", "2026-09-01T09:00:00Z")
    id = remember_at(
        trivet, "The dentist has time on 17 November at 16:15.", "2026-09-01T09:00:00Z"
    )
    expected = recalled(trivet, "dentist this coming Tuesday")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE memory SET times = NULL")
        connection.commit()
    assert recalled(trivet, "dentist this coming Tuesday") == expected
    assert expected[id].why.time is not None


def test_yearly_period_matches_every_year(trivet: Trivet) -> None:
    id = remember_at(trivet, "Bring a jumper between October and April.", "2025-02-01T09:00:00Z")
    other = remember_at(trivet, "A jumper", "2025-05-01T09:00:00Z")
    hits = recalled(trivet, "bring a jumper between October and April")
    assert hits[id].why.time is not None
    assert hits[other].why.time is None


def test_valid_from_counts_as_time(trivet: Trivet) -> None:
    id = remember_at(
        trivet, "The price of a ride is two francs.", "2026-06-01", valid_from="2026-11-03"
    )
    remember_at(trivet, "The price of a ride", "2026-06-01")
    assert (
        recalled(trivet, "price of a ride last week")[id].why.time == f"became true in {LAST_WEEK}"
    )


def test_time_is_a_preference_and_not_a_filter(trivet: Trivet) -> None:
    ids = {
        remember_at(trivet, f"We decide on tea {day}.", f"2026-11-{day:02}T09:00:00Z")
        for day in (1, 5, 9)
    }
    assert set(recalled(trivet, "decide tea last week")) == ids
    plain = recalled(trivet, "decide tea", minimum_score=0.5)
    assert set(recalled(trivet, "decide tea last week", minimum_score=0.5)) == set(plain) == ids


def test_no_memory_in_the_period_changes_nothing_but_a_note(trivet: Trivet) -> None:
    remember_at(trivet, "We decide on tea.", "2026-10-01T09:00:00Z")
    answer = trivet.recall("what did we decide last week")
    plain = trivet.recall("what did we decide")
    assert [hit.score for hit in answer.hits] == [hit.score for hit in plain.hits]
    assert f"no memory that was found is from {LAST_WEEK}" in answer.health.notes
    assert plain.health.notes == ()


def test_memory_of_the_period_missed_by_legs_is_added(trivet: Trivet) -> None:
    for number in range(8):
        remember_at(trivet, f"Decide {number}.", "2026-10-02T09:00:00Z")
    asked = remember_at(
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
    # The caller's filters still apply.
    assert asked not in recalled(
        trivet, "what did we decide last week", created_before="2026-11-01"
    )


def test_time_words_are_not_searched_but_still_match(trivet: Trivet) -> None:
    literal = remember_at(
        trivet, "Last week, the last week, was the last week of the fair.", "2025-03-01T09:00:00Z"
    )
    asked = remember_at(trivet, "The fence broke in the storm.", "2026-11-05T09:00:00Z")
    hits = recalled(trivet, "what broke last week")
    assert list(hits) == [asked, literal]
    assert hits[literal].score < hits[asked].score / 2


def test_time_of_an_event_is_looked_up_in_the_store(trivet: Trivet) -> None:
    remember_at(trivet, "The launch was on 3 March 2026. It went well.", "2026-03-05T09:00:00Z")
    before = remember_at(
        trivet, "For payments and invoices of customers we use Adyen.", "2026-02-01T09:00:00Z"
    )
    after = remember_at(trivet, "Payments: Stripe.", "2026-06-01T09:00:00Z")
    hits = recalled(trivet, "who did the payments before the launch?")
    assert hits[before].why.time == "written in 'before the launch' (before 3 March 2026)"
    assert hits[after].why.time is None
    assert list(hits).index(before) < list(hits).index(after)
    # An instruction is not a question about time, and the other event has no known date.
    assert all(
        hit.why.time is None
        for hit in recalled(trivet, "check the payments before the launch").values()
    )
    assert all(
        hit.why.time is None
        for hit in recalled(trivet, "who did the payments before the move?").values()
    )


def test_filters_accept_the_same_time_expressions(trivet: Trivet) -> None:
    old = remember_at(trivet, "tea", "60d")
    new = remember_at(trivet, "cake", "yesterday", valid_to="+7d")
    assert trivet.get(new).created_at == datetime(2026, 11, 14, tzinfo=UTC)
    assert trivet.get(new).valid_to == datetime(2026, 11, 22, 10, tzinfo=UTC)
    assert [memory.id for memory in trivet.list(created_after="7d").memories] == [new]
    assert [memory.id for memory in trivet.list(created_after="2026-11").memories] == [new]
    assert [memory.id for memory in trivet.list(created_before="2026-11").memories] == [old]
    assert list(recalled(trivet, "tea cake", created_before="last monday")) == [old]


def test_why_not_reports_a_time_mismatch(trivet: Trivet) -> None:
    other = remember_at(trivet, "We decide on tea.", "2026-10-01T09:00:00Z")
    remember_at(trivet, "We decide on cake.", "2026-11-05T09:00:00Z")
    explained = trivet.why_not("what did we decide last week", other, limit=1)
    assert f"it is not from {LAST_WEEK}; memories that are count more" in explained.reasons
