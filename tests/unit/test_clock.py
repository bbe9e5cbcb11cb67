"""Accepted time formats and their meaning, at noon UTC on Sunday, November 15, 2026."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from trivet.common.clock import (
    clock_fixed_at,
    local_time,
    moment,
    now,
    parse_time,
    parse_time_expression,
)
from trivet.errors import InvalidInput


@pytest.fixture(autouse=True)
def _in_new_york_at_noon_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    with clock_fixed_at("2026-11-15T12:00:30Z"):
        yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-03", "2026-11-03T00:00:00"),
        ("2026-11-03T09:30:00+02:00", "2026-11-03T07:30:00"),
        ("2026-11", "2026-11-01T00:00:00"),
        ("2025", "2025-01-01T00:00:00"),
        ("now", "2026-11-15T12:00:30"),
        ("7d", "2026-11-08T12:00:00"),
        ("36h", "2026-11-14T00:00:00"),
        ("2w", "2026-11-01T12:00:00"),
        ("3mo", "2026-08-15T12:00:00"),
        ("1y", "2025-11-15T12:00:00"),
        ("+30d", "2026-12-15T12:00:00"),
        ("2 weeks ago", "2026-11-01T12:00:00"),
        ("two weeks ago", "2026-11-01T12:00:00"),
        # Named days use the process's time zone, where midnight is 4:00 or 5:00 UTC.
        ("today", "2026-11-15T05:00:00"),
        ("Yesterday", "2026-11-14T05:00:00"),
        ("last monday", "2026-11-09T05:00:00"),
        ("friday", "2026-11-13T05:00:00"),
        ("next friday", "2026-11-20T05:00:00"),
        ("3 November", "2026-11-03T05:00:00"),
        ("march", "2026-03-01T05:00:00"),
        ("last summer", "2026-06-01T04:00:00"),
    ],
)
def test_accepted_time_formats(text: str, moment: str) -> None:
    assert parse_time_expression(text, "created_after") == f"{moment}.000000Z"


@pytest.mark.parametrize(
    "text",
    ["soon", "7", "7x", "-7d", "before march", "between now", "2026-13", "99999y", "0000", ""],
)
def test_invalid_time_error_lists_formats(text: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"created_after: .*(2026-11-03.*7d.*yesterday|outside the years)"
    ):
        parse_time_expression(text, "created_after")


def test_parse_time_accepts_only_iso() -> None:
    with pytest.raises(InvalidInput, match="ISO 8601"):
        parse_time("yesterday", "created_at")


def test_stored_time_is_shown_locally_and_day_is_kept() -> None:
    assert str(local_time(moment("2026-11-03T02:00:00.000000Z"))) == "2026-11-02 21:00:00"
    assert str(local_time(moment("2026-11-03T00:00:00.000000Z"))) == "2026-11-03 00:00:00"
    assert local_time(moment("0001-01-01T00:00:00.000001Z")) is None


def test_fixed_clock_is_restored() -> None:
    with clock_fixed_at("1999-12-31"):
        assert now() == "1999-12-31T00:00:00.000000Z"
    assert now() == "2026-11-15T12:00:30.000000Z"
