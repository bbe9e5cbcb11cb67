"""Time as Trivet stores it: ISO 8601, UTC, microseconds, fixed width, so that text order is time order.

What a caller writes as a time is read here too. Days in words ("yesterday") are days of the zone of this process.
Callers are given moments (aware datetimes in UTC); what goes into a query or a column is a stamp.

How much time passed between two looks at the clock, on a machine whose clock people and batteries set.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import msgspec

from trivet.errors import InvalidInput

_fixed_time: ContextVar[datetime | None] = ContextVar("clock", default=None)

_relative_duration = re.compile(r"(?P<ahead>\+?)(?P<count>\d{1,5}) ?(?P<unit>h|d|w|mo|y)")
_ago = re.compile(r"(?P<count>\d{1,5}|[a-z]{1,6}) (?P<unit>hour|day|week|month|year)s? ago")
_month_or_year = re.compile(r"(?P<year>\d{4})(?:-(?P<month>0[1-9]|1[0-2]))?")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_MONTHS_IN = {"mo": 1, "y": 12}
ACCEPTED_FORMS = (
    "Write a date or a time (2026-11-03, 2026-11-03T09:30:00Z), a month or a year (2026-11), how long ago "
    "(7d; also h, w, mo, y; +7d for ahead), or words such as yesterday, last monday, 3 November"
)


def now() -> str:
    return stamp(_moment())


def local_now() -> datetime:
    """The time on the clock of this process's zone, without the zone."""
    return _moment().astimezone().replace(tzinfo=None)


def _moment() -> datetime:
    return _fixed_time.get() or datetime.now(UTC)


@contextmanager
def clock_fixed_at(moment: str) -> Iterator[None]:
    """Within it, it is `moment` for the caller and what it calls: for tests, and to ask as at another time."""
    token = _fixed_time.set(datetime.fromisoformat(parse_time(moment, "moment")))
    try:
        yield
    finally:
        _fixed_time.reset(token)


def is_clock_fixed() -> bool:
    """Whether it is another time for the caller than the machine's."""
    return _fixed_time.get() is not None


def stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def next_stamp(text: str) -> str | None:
    """The stamp directly behind this one; None behind the last of the calendar."""
    found = moment(text)
    return (
        stamp(found + timedelta(microseconds=1))
        if found < datetime.max.replace(tzinfo=UTC)
        else None
    )


def moment(text: str) -> datetime:
    """The moment that a stamp names, or a date, which is a day in UTC."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def moment_or_none(text: str | None) -> datetime | None:
    return None if text is None else moment(text)


def stamp_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else stamp(moment)


def local_time(moment: datetime) -> datetime | None:
    """A stored time on the clock of this process's zone. Midnight in UTC was given as a day, and stays that day.

    None where it lies outside of what a zone can show: the first and the last day of the calendar.
    """
    in_utc = moment.astimezone(UTC)
    if in_utc.time() == datetime.min.time():
        return in_utc.replace(tzinfo=None)
    try:
        return moment.astimezone().replace(tzinfo=None)
    except (OverflowError, ValueError):
        return None


def parse_time(text: str, field: str) -> str:
    """A date or a date and time in ISO 8601; without an offset it is taken as UTC. For what programs have written."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"{field}: {text!r} is not a time. Write it in ISO 8601, such as 2026-03-01 or 2026-03-01T09:30:00Z."
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return stamp(moment)
    except (OverflowError, ValueError):
        raise InvalidInput(f"{field}: {text!r} is outside the years 1 to 9999 in UTC.") from None


def parse_time_expression(text: str, field: str) -> str:
    """What a caller gave as a time, in any of `ACCEPTED_FORMS`. A period means its first moment.

    So "after 2026-11" includes November and "before 2026-11" ends with October.
    """
    try:
        moment = _parse_relative_time(" ".join(text.split()))
        if moment is not None:
            return stamp(moment)
    except (OverflowError, ValueError):
        raise InvalidInput(f"{field}: {text!r} is outside the years 1 to 9999 in UTC.") from None
    try:
        return parse_time(text, field)
    except InvalidInput as error:
        if "outside" in str(error):
            raise
        raise InvalidInput(f"{field}: {text!r} is not a time. {ACCEPTED_FORMS}.") from None


def _parse_relative_time(text: str) -> datetime | None:
    """None for ISO 8601 and for what is no time at all."""
    if text.lower() == "now":
        return _moment()
    if found := _month_or_year.fullmatch(text):
        return datetime(int(found["year"]), int(found["month"] or 1), 1, tzinfo=UTC)
    if found := _relative_duration.fullmatch(text.lower()):
        return _shifted(int(found["count"]) * (1 if found["ahead"] else -1), found["unit"])
    if (found := _ago.fullmatch(text.lower())) and (count := _parse_count(found["count"])):
        unit = found["unit"]
        return _shifted(-count, "mo" if unit == "month" else unit[0])
    return _start_of_period(text) if text[:1].isalpha() or " " in text else None


def _shifted(count: int, unit: str) -> datetime:
    """From now. To the minute, so that answers to the same question a moment later can use what is kept for it."""
    from trivet.dates.spans import shift_time

    moment = _moment().replace(second=0, microsecond=0)
    return (
        shift_time(moment, count * _MONTHS_IN[unit], "month")
        if unit in _MONTHS_IN
        else moment + count * _UNITS[unit]
    )


def _parse_count(count: str) -> int | None:
    from trivet.dates.forms import COUNTS

    return int(count) if count.isdigit() else COUNTS.get(count)


def _start_of_period(text: str) -> datetime | None:
    """The beginning of the one period that the whole text names; a bare "monday" is the last one."""
    from trivet.dates.parse import find_time_expressions

    asked = f"since {text}"
    found = [
        one
        for one in find_time_expressions(asked, local_now())
        if (one.start, one.stop) == (0, len(asked))
    ]
    return found[0].spans[0].start if found else None


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class ClockReading(msgspec.Struct, frozen=True, kw_only=True):
    """`up` is for how long the machine has run, sleep included, since the start that `boot` names."""

    at: str = ""
    boot: str = ""
    up: float = 0.0


def read_clock() -> ClockReading:
    """Where the system does not tell for how long it has run, by the clock alone."""
    boot = "" if is_clock_fixed() else _read_boot_id()
    return ClockReading(
        at=now(), boot=boot, up=time.clock_gettime(time.CLOCK_BOOTTIME) if boot else 0.0
    )


def elapsed_seconds(earlier: ClockReading, later: ClockReading) -> float:
    """Of a machine that was not restarted, whatever was done to its clock; else by the clock, and never below zero."""
    if earlier.boot and earlier.boot == later.boot:
        return max(0.0, later.up - earlier.up)
    return max(0.0, (moment(later.at) - moment(earlier.at)).total_seconds())


@cache
def _read_boot_id() -> str:
    try:
        return (
            _BOOT_ID.read_text(encoding="ascii").strip() if hasattr(time, "CLOCK_BOOTTIME") else ""
        )
    except OSError:  # not Linux: the clock must do
        return ""
