"""Time as stored: ISO 8601 in UTC, fixed width, so that text order is time order.

Columns hold stamps (texts); callers get moments (aware datetimes).
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
    "Use a date or time (2026-11-03, 2026-11-03T09:30:00Z), a month or year (2026-11), a distance "
    "(7d ago as 7d, ahead as +7d; also h, w, mo, y), or words (yesterday, last monday, 3 November)"
)


def now() -> str:
    return stamp(_moment())


def local_now() -> datetime:
    return _moment().astimezone().replace(tzinfo=None)


def _moment() -> datetime:
    return _fixed_time.get() or datetime.now(UTC)


@contextmanager
def clock_fixed_at(moment: str) -> Iterator[None]:
    """Fix the clock for the block."""
    token = _fixed_time.set(datetime.fromisoformat(parse_time(moment, "moment")))
    try:
        yield
    finally:
        _fixed_time.reset(token)


def is_clock_fixed() -> bool:
    return _fixed_time.get() is not None


def stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def next_stamp(text: str) -> str | None:
    """Return the stamp one microsecond later; None at the end of the calendar."""
    found = moment(text)
    return (
        stamp(found + timedelta(microseconds=1))
        if found < datetime.max.replace(tzinfo=UTC)
        else None
    )


def moment(text: str) -> datetime:
    """Return the moment of a stamp or of a date (a day in UTC)."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def moment_or_none(text: str | None) -> datetime | None:
    return None if text is None else moment(text)


def stamp_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else stamp(moment)


def local_time(moment: datetime) -> datetime | None:
    """Return local time; midnight in UTC was given as a day and stays that day.

    None for the calendar's first and last day, which a zone cannot represent.
    """
    in_utc = moment.astimezone(UTC)
    if in_utc.time() == datetime.min.time():
        return in_utc.replace(tzinfo=None)
    try:
        return moment.astimezone().replace(tzinfo=None)
    except (OverflowError, ValueError):
        return None


def parse_time(text: str, field: str) -> str:
    """Return the stamp of an ISO 8601 date or time, in UTC if without an offset."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"{field}: {text!r} is not a time. Use ISO 8601, such as 2026-03-01 or "
            "2026-03-01T09:30:00Z."
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return stamp(moment)
    except (OverflowError, ValueError):
        raise InvalidInput(f"{field}: {text!r} is outside the years 1 to 9999 in UTC.") from None


def parse_time_expression(text: str, field: str) -> str:
    """Return the stamp of a time in any of `ACCEPTED_FORMS`; a period means its first moment.

    "After 2026-11" includes November; "before 2026-11" excludes it.
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
    """Shift from now, to the minute, so that repeated queries share cached results."""
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
    """Return the start of the only period in the text; a bare "monday" is the last one."""
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
    """A clock reading; `up` is the uptime, sleep included, of the boot named `boot`."""

    at: str = ""
    boot: str = ""
    up: float = 0.0


def read_clock() -> ClockReading:
    boot = "" if is_clock_fixed() else _read_boot_id()
    return ClockReading(
        at=now(), boot=boot, up=time.clock_gettime(time.CLOCK_BOOTTIME) if boot else 0.0
    )


def elapsed_seconds(earlier: ClockReading, later: ClockReading) -> float:
    """Return the uptime between readings; after a reboot the wall-clock time, at least 0."""
    if earlier.boot and earlier.boot == later.boot:
        return max(0.0, later.up - earlier.up)
    return max(0.0, (moment(later.at) - moment(earlier.at)).total_seconds())


@cache
def _read_boot_id() -> str:
    try:
        return (
            _BOOT_ID.read_text(encoding="ascii").strip() if hasattr(time, "CLOCK_BOOTTIME") else ""
        )
    except OSError:  # not Linux: use the wall clock
        return ""
