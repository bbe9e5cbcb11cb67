"""Calendar spans, and cheap checks that save most texts from loading the grammar."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

import msgspec

_year_or_quarter = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)|\b[qQ][1-4]\b")
# Each match contains one of these; searching for them takes a fraction of the time.
_NUMBERED = ("19", "20", "q", "Q")
# Maps letters to lowercase and all other bytes to spaces.
_letters = bytes(
    byte | 0x20 if chr(byte).isalpha() and byte < 0x80 else 0x20 for byte in range(256)
)
_CUES = frozenset(
    b"january february march april may june july august september october november december jan "
    b"feb mar apr jun jul "
    b"aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue "
    b"tues wed thu thurs fri "
    b"spring summer autumn fall winter yesterday today tonight tomorrow recently lately day week "
    b"weekend month quarter "
    b"year morning afternoon evening night minutes hours days weeks months quarters years "
    b"ago".split()
)
# Before an event: "before the launch".
_RELATIONS = frozenset(b"before after since until during".split())


def may_mention_time(text: str) -> bool:
    numbered = any(sign in text for sign in _NUMBERED) and _year_or_quarter.search(text) is not None
    return numbered or not _CUES.isdisjoint(_words(text))


def may_mention_event(text: str) -> bool:
    return not _RELATIONS.isdisjoint(_words(text))


def _words(text: str) -> list[bytes]:
    return text.encode(errors="replace").translate(_letters).split()


DAY = timedelta(days=1)
# Local time of an unnamed zone, also enforced when decoding files.
LocalTime = Annotated[datetime, msgspec.Meta(tz=False)]
MONTHS_IN = {"month": 1, "quarter": 3, "year": 12}


class Span(NamedTuple):
    """From `start` up to, excluding, `end`, in local time without a zone; None is open."""

    start: LocalTime | None
    end: LocalTime | None

    def overlaps(self, other: Span) -> bool:
        return before(self.start, other.end) and before(other.start, self.end)

    def holds(self, moment: datetime) -> bool:
        return (self.start is None or self.start <= moment) and (
            self.end is None or moment < self.end
        )


Spans = tuple[Span, ...]


class ReferenceTime(NamedTuple):
    """The moment an expression is seen from; `tense` is -1 past, 1 future, 0 unknown.

    `year` is the year that the rest of the text names. If two days are possible, both count, or
    only the `nearest`.
    """

    now: datetime
    tense: int
    year: int | None = None
    nearest: bool = False

    @property
    def today(self) -> datetime:
        return self.now.replace(hour=0, minute=0, second=0, microsecond=0)

    @property
    def monday(self) -> datetime:
        return self.today - self.today.weekday() * DAY


def before(start: datetime | None, end: datetime | None) -> bool:
    return start is None or end is None or start < end


def days(start: datetime, count: int = 1) -> Span:
    return Span(start, start + count * DAY)


def months(year: int, month: int, count: int = 1) -> Span:
    """Return `count` months; a month below 1 or above 12 belongs to another year."""
    return Span(first_of(year, month), first_of(year, month + count))


def first_of(year: int, month: int) -> datetime:
    years, index = divmod(month - 1, 12)
    return datetime(year + years, index + 1, 1)


def shift_time(now: datetime, count: int, unit: str) -> datetime:
    if unit in MONTHS_IN:
        first = first_of(now.year, now.month + count * MONTHS_IN[unit])
        last_day = (first_of(first.year, first.month + 1) - DAY).day
        return now.replace(year=first.year, month=first.month, day=min(now.day, last_day))
    return now + count * timedelta(**{f"{unit}s": 1})


def in_year(span: Span, year: int) -> Span | None:
    """Return the same days of another year; None for an open span."""
    if span.start is None or span.end is None:
        return None
    years = year - span.start.year
    return Span(shift_time(span.start, years, "year"), shift_time(span.end, years, "year"))


# A future date this many times nearer counts despite the past tense: "did we swap the night of 21
# November?"
MUCH_NEARER = 3


def spans_by_year(
    of: Callable[[int], Span], reference_time: ReferenceTime, given: dict[str, str]
) -> Spans:
    """Return the span in the given year; else the latest begun, the next, or both if unclear."""
    if year := given.get("year") or reference_time.year:
        return (of(int(year)),)
    spans = []
    # 29 February occurs every four years.
    for year in range(reference_time.now.year - 4, reference_time.now.year + 5):
        try:
            spans.append(of(year))
        except ValueError:
            continue
    return choose_by_tense(spans, reference_time)


def choose_by_tense(spans: list[Span], reference_time: ReferenceTime) -> Spans:
    """Return the latest span that has begun, the next one, or both if the tense is unclear."""
    now = reference_time.now
    begun = [span for span in spans if span.start is not None and span.start <= now][-1:]
    ahead = [
        span for span in spans if span.start is not None and span.end is not None and span.end > now
    ][:1]
    if reference_time.tense > 0 or not begun:
        return tuple(ahead or begun)
    if reference_time.tense < 0:
        near = [span for span in ahead if _is_nearer(span, begun[0], now, MUCH_NEARER)]
        return (*begun, *near)
    if reference_time.nearest:
        return tuple([span for span in ahead if _is_nearer(span, begun[0], now, 1)] or begun)
    return tuple(dict.fromkeys((*begun, *ahead)))


def _is_nearer(ahead: Span, begun: Span, now: datetime, times: int) -> bool:
    if ahead == begun or ahead.start is None or begun.end is None:
        return False
    return times * (ahead.start - now) < now - begun.end


def format_span(span: Span) -> str:
    """Return a span in words: "2-8 November 2026", "March 2026", "from 9 November 2026"."""
    start, end = span
    if start is None or end is None:
        return f"from {_written(start)}" if start else f"before {_written(end)}" if end else "ever"
    last = end - timedelta(microseconds=1)
    if start.day == 1 and end.day == 1 and end.hour == 0:
        if (start.year, start.month) == (last.year, last.month):
            return f"{start:%B %Y}"
        return (
            f"{start:%B}-{last:%B %Y}"
            if start.year == last.year
            else f"{start:%B %Y} to {last:%B %Y}"
        )
    if start.date() == last.date():
        return _written(start)
    if (start.year, start.month) == (last.year, last.month):
        return f"{start.day}-{last.day} {start:%B %Y}"
    return f"{_written(start)} to {_written(last)}"


def _written(day: datetime | None) -> str:
    return f"{day.day} {day:%B %Y}" if day else ""
