"""Times are datetimes in Python and ISO 8601 with a Z everywhere else."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone

import msgspec
import pytest

from trivet import InvalidInput, Trivet
from trivet.common.clock import now

NOON_IN_BERLIN = datetime(2026, 3, 1, 12, 0, tzinfo=timezone(timedelta(hours=1)))


def test_returned_times_are_aware_and_in_utc(trivet: Trivet) -> None:
    one = trivet.remember("One.", created_at=NOON_IN_BERLIN, valid_to=date(2999, 1, 1)).id
    two = trivet.remember("Two.").id
    memory = trivet.get(one)
    assert memory.created_at == datetime(2026, 3, 1, 11, 0, tzinfo=UTC)
    assert memory.valid_to == datetime(2999, 1, 1, tzinfo=UTC)
    trivet.edit(one, title="First")
    moments = [
        memory.created_at,
        trivet.get(two).updated_at,
        trivet.link(one, "see-also", two).created_at,
        trivet.links(two)[0].created_at,
        trivet.history(one)[1].changed_at,
        trivet.history(one)[0].memory.created_at,
        trivet.recall("one").hits[0].created_at,
        trivet.inbox_show(trivet.inbox_propose("We deploy on Tuesdays.").id or "").created_at,
    ]
    assert {moment.utcoffset() for moment in moments} == {timedelta(0)}


def test_datetime_date_and_text_are_accepted(trivet: Trivet) -> None:
    id = trivet.remember("One.", created_at=NOON_IN_BERLIN).id
    for after in (NOON_IN_BERLIN, date(2026, 3, 1), "2026-03-01", datetime(2026, 3, 1, 11, 0)):
        assert [memory.id for memory in trivet.list(created_after=after).memories] == [id]
    assert trivet.list(created_before=NOON_IN_BERLIN).memories == ()
    trivet.edit(id, valid_from=NOON_IN_BERLIN)
    assert trivet.get(id).valid_from == NOON_IN_BERLIN
    (stored,) = trivet.remember_many([{"content": "Two.", "created_at": NOON_IN_BERLIN}])
    assert trivet.get(stored.id).created_at == NOON_IN_BERLIN
    with pytest.raises(InvalidInput, match="title"):
        trivet.remember("x", title=7)  # type: ignore[arg-type]


def test_json_times_are_iso_8601_with_z(trivet: Trivet) -> None:
    id = trivet.remember("One.", created_at=NOON_IN_BERLIN).id
    assert json.loads(msgspec.json.encode(trivet.get(id)))["created_at"] == "2026-03-01T11:00:00Z"
    assert (
        msgspec.to_builtins(trivet.recall("one"))["hits"][0]["created_at"] == "2026-03-01T11:00:00Z"
    )
    line = json.loads(list(trivet.export())[1])
    assert line["memory"]["created_at"] == "2026-03-01T11:00:00Z"


def test_stored_times_have_fixed_width(trivet: Trivet) -> None:
    """Text order must be time order, so microseconds are always written."""
    trivet.remember("One.", created_at=NOON_IN_BERLIN)
    row = trivet.engine.store.memories._row("after_key", key=0, limit=1, viewer=None)
    assert row["created_at"] == "2026-03-01T11:00:00.000000Z"
    assert len(row["created_at"]) == len(now())
