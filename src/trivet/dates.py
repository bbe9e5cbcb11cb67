"""Expressions of time in English text: "last week", "on Wednesday 11 November", "since Monday", "Q3", "two weeks ago".

`expressions_in` finds them and turns each into spans of the calendar, seen from a given moment. The same grammar reads
questions (from now) and memories (from the day they were written). No library fits: those tried take "may", "we" and
the number of a port for dates or cannot find "last week", and none says where a period ends (docs/decisions/0026).

Words that are mostly no date ("may", "March", "Sunday", "spring", 2025) count only after a word such as "in" or "since".
Patterns are tried where a word begins and none repeats without bound, so the time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import cache
from typing import NamedTuple

# Of a long text the beginning is read: a question is short, and of a long memory the first dates tell when it was.
LONGEST_READ = 8_000
# How many days "recently" and "the other day" reach back.
RECENTLY = 14
# A word's tense is looked for so many characters around the expression.
AROUND = 60
# What can stand before an expression and belong to it: "until the middle of March".
LONGEST_LEAD = 40

DAY = timedelta(days=1)


class Span(NamedTuple):
    """From `start` up to, not including, `end`, in local time without a zone; None where it is open."""

    start: datetime | None
    end: datetime | None

    def overlaps(self, other: Span) -> bool:
        return _before(self.start, other.end) and _before(other.start, self.end)

    def holds(self, moment: datetime) -> bool:
        return (self.start is None or self.start <= moment) and (self.end is None or moment < self.end)


Spans = tuple[Span, ...]


class Expression(NamedTuple):
    """One expression of time. Several spans where it leaves open which is meant: "in March", the last or the next.

    `spelled`: it names a date by its digits or its month, which may stand just so in a memory's text.
    """

    text: str
    start: int
    stop: int
    spans: Spans
    spelled: bool


class _Seen(NamedTuple):
    """From when an expression is looked at, and where it points by the words around it: -1 back, 1 ahead, 0 unsure."""

    now: datetime
    tense: int

    @property
    def today(self) -> datetime:
        return self.now.replace(hour=0, minute=0, second=0, microsecond=0)

    @property
    def monday(self) -> datetime:
        return self.today - self.today.weekday() * DAY


def _before(start: datetime | None, end: datetime | None) -> bool:
    return start is None or end is None or start < end


_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_WEEKDAYS = "mon tue wed thu fri sat sun".split()
_NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()
_COUNTS = {"a": 1, "an": 1, "a couple of": 2, "couple of": 2, "a few": 3, "few": 3, "several": 4} | {
    word: number for number, word in enumerate(_NUMBERS, 1)
}
# The first month of each, as on the northern half of the earth; winter reaches into the next year.
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_QUARTERS = ("first", "second", "third", "fourth")
# From and until which hour of the day.
_HOURS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 30)}
# By how much "N units ago" may be off to either side.
_SLACK = {
    "minute": timedelta(minutes=10),
    "hour": timedelta(hours=1),
    "day": timedelta(),
    "week": 4 * DAY,
    "month": 16 * DAY,
    "quarter": 46 * DAY,
    "year": 183 * DAY,
}
_MONTHS_IN = {"month": 1, "quarter": 3, "year": 12}

_month = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
)
_weekday = (
    r"(?P<weekday>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs(?:day)?)?|fri(?:day)?|saturday|sunday)\b"
)
_season = rf"(?P<season>{'|'.join(_SEASONS)})\b"
_day = r"(?P<day>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?"
_year = r"(?P<year>(?:19|20)\d\d)(?!\d)"
_count = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted(_COUNTS, key=len, reverse=True))})"
_unit = r"(?P<unit>minute|hour|day|week|month|quarter|year)s?\b"

# In the order in which they are tried at a place: a longer one stands before what is its beginning.
_FORMS = {
    "iso": r"(?P<year>(?:19|20)\d\d)[-/](?P<number>0[1-9]|1[0-2])(?:[-/](?P<day>[12]\d|3[01]|0[1-9]))?(?![-/\d])",
    "numbers": r"(?P<one>\d{1,2})(?P<sign>[./])(?P<two>\d{1,2})[./](?P<year>(?:19|20)\d\d)(?![\w/])",
    "days": rf"{_day} ?(?:-|–|to|and) ?(?P<last>[12]\d|3[01]|[1-9])(?:st|nd|rd|th)? (?:of )?{_month}(?:,? {_year})?",
    "day_month": rf"(?:{_weekday},? (?:the )?)?{_day}\.? (?:of )?{_month}(?:\.?,? {_year})?",
    "month_day": rf"(?:{_weekday},? )?{_month}\.? (?:the )?{_day}\b(?:,? {_year})?",
    "month_year": rf"{_month}\.?,? (?:of )?{_year}",
    "quarter": rf"(?:q(?P<quarter>[1-4])|(?P<ordinal>{'|'.join(_QUARTERS)}) quarter)\b(?:,? (?:of )?{_year})?",
    "season": rf"{_season}(?:,? (?:of )?{_year})?(?! (?:boot|framework|data|security|cloud|mvc|cleaning)\b)",
    "part_of_day": r"(?P<which>this|yesterday|tomorrow|last) (?P<hours>morning|afternoon|evening|night)\b",
    "named_day": r"(?:the )?day before yesterday\b|(?:the )?day after tomorrow\b|(?:yesterday|today|tonight|tomorrow)\b",
    "vague": r"(?:recently|lately|the other day)\b",
    "ago": rf"(?:about |around |some )?{_count} {_unit} (?:ago|back|earlier)\b",
    "ahead": rf"in {_count} (?P<unit>day|week|month)s?\b(?! of)",
    "rolling": rf"(?:(?:the )?(?:last|past|previous) {_count}|the (?:last|past)|past) {_unit}",
    "before_last": rf"(?:the )?{_unit} before last\b",
    "relative": r"(?P<which>last|previous|this past|this|current|next|coming) "
    rf"(?:(?P<unit>weekend|week|month|quarter|year)\b|{_weekday}|{_month}|{_season})",
    "weekend": r"the weekend\b",
    "weekday": _weekday,
    "month": _month,
    "year": rf"{_year}(?![-/.:,]\d)",
}
# Those that name a date by digits or a month, in words that a memory may hold just so.
_SPELLED = frozenset("iso numbers days day_month month_day month_year quarter season month year".split())
# After which words a word that is mostly no date is one. What has an article before it is none: "the May release".
_LEADS = {
    "weekday": frozenset("on since until till before after by from between".split()),
    "month": frozenset("in during since until till before after from between throughout".split()),
    "year": frozenset("in during since until till before after from between throughout".split()),
    "season": frozenset("in during since until till before after from between throughout over".split()),
    "weekend": frozenset("at over on during since before after".split()),
}
# "the note from June" may be by June; the others are hardly anyone's name.
_NAMES = frozenset("jan april may june august".split())
_lead = re.compile(
    r"(?:(?<!\w)(?P<relation>since|until|till|before|after|prior to|between|from|in|on|at|over|during|throughout|by)\s+)?"
    r"(?P<article>the\s+)?"
    r"(?:(?<!\w)(?P<part>early|late|mid|middle of|end of|start of|beginning of)[\s-]+(?:in )?)?$",
    re.IGNORECASE,
)
_to = re.compile(r"\s+(?:and|to|until|till|through)\s+(?:the\s+)?$|\s*[-–]\s*$", re.IGNORECASE)
_past = re.compile(r"\b(?:did|didn't|was|were|had|been|used to|decided|happened|said|went|got|came|made|met)\b", re.I)
_future = re.compile(r"\b(?:will|won't|going to|upcoming|plans?|planned|due|scheduled?|deadline)\b", re.IGNORECASE)
_nothing_after = re.compile(r"[\s?!.]*$")

_word = re.compile(r"[a-z]+")
_year_or_quarter = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)|\b[qQ][1-4]\b")
_CUES = frozenset(
    "january february march april may june july august september october november december jan feb mar apr jun jul aug "
    "sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thurs fri "
    "spring summer autumn fall winter yesterday today tonight tomorrow recently lately day week weekend month quarter "
    "year morning afternoon evening night minutes hours days weeks months quarters years ago".split()
)

_about_past = re.compile(
    r"\b(?:at first|(?:in|at) the beginning|to begin with|original(?:ly)?|initial(?:ly)?|former(?:ly)?|previous(?:ly)?"
    r"|earlier|back then|back when|in the past|at th(?:e|at) time|in those days|used to|once had|until|before|prior to"
    r"|as of|older|the old|the first (?:plan|version|idea|choice)|any ?more)\b",
    re.IGNORECASE,
)


def asks_about_past(query: str, now: datetime | None = None) -> bool:
    """Whether a question wants what held at an earlier time, such as "at first", "before", "used to", "in October".

    "What did we decide" alone does not: that wants what holds now.
    """
    if _about_past.search(query[:LONGEST_READ]):
        return True
    seen = now or datetime.now()
    spans = [span for expression in expressions_in(query, seen) for span in expression.spans]
    today = seen.replace(hour=0, minute=0, second=0, microsecond=0)
    return any(span.end is not None and span.end <= today for span in spans)


def expressions_in(text: str, now: datetime) -> list[Expression]:
    """The expressions of time in a text as they were meant at `now`, which is local time without a zone."""
    read = text[:LONGEST_READ]
    if not _may_hold_any(read):
        return []
    found: list[Expression] = []
    open_range = False  # the last one began with "from" or "between", and waits for its end
    for match in _any_form().finditer(read):
        kind = match.lastgroup or ""
        lead = _lead.search(read[max(0, match.start() - LONGEST_LEAD) : match.start()])
        assert lead is not None, "every part of it may be missing"
        closes = open_range and _to.fullmatch(read[found[-1].stop : match.start()]) is not None
        if not closes and not _is_date(kind, match, lead):
            continue
        relation = (lead["relation"] or "").lower()
        seen = _Seen(now, -1 if relation == "since" else _tense(read, match))
        spans = _spans(kind, match, seen, (lead["part"] or "").lower())
        if closes:
            found[-1] = _closed(found[-1], spans, match, read)
            open_range = False
        elif spans:
            start = match.start() - (lead.end() - lead.start())
            related = _related(relation, spans, now)
            found.append(Expression(read[start : match.end()], start, match.end(), related, kind in _SPELLED))
            open_range = relation in ("from", "between")
    return [expression for expression in found if expression.spans]


def _may_hold_any(text: str) -> bool:
    """Whether a word of any expression stands in the text: most texts need no more than this."""
    return _year_or_quarter.search(text) is not None or not _CUES.isdisjoint(_word.findall(text.lower()))


@cache
def _any_form() -> re.Pattern[str]:
    """All forms as one pattern, made when it is first needed. A name can stand but once in it, so parts lose theirs."""
    nameless = {kind: re.sub(r"\(\?P<\w+>", "(?:", form) for kind, form in _FORMS.items()}
    return re.compile(r"(?<![\w.])(?:" + "|".join(f"(?P<{kind}>{form})" for kind, form in nameless.items()) + ")", re.I)


@cache
def _form(kind: str) -> re.Pattern[str]:
    return re.compile(_FORMS[kind], re.IGNORECASE)


def _is_date(kind: str, match: re.Match[str], lead: re.Match[str]) -> bool:
    """Whether a word that is mostly no date is one here, by what stands before it."""
    if kind not in _LEADS or (kind == "season" and match.group()[-1].isdigit()):
        return True
    if kind == "weekday" and _nothing_after.match(match.string, match.end()) and _past.search(match.string):
        return not lead["article"]  # "what did we discuss Friday?"
    relation = (lead["relation"] or "").lower()
    if relation == "from" and match.group().lower() in _NAMES:
        return False
    if lead["article"] and kind not in ("season", "weekend") and not lead["part"]:
        return False
    return bool(lead["part"]) or relation in _LEADS[kind]


def _tense(text: str, match: re.Match[str]) -> int:
    around = text[max(0, match.start() - AROUND) : match.end() + AROUND]
    return -1 if _past.search(around) else 1 if _future.search(around) else 0


def _spans(kind: str, match: re.Match[str], seen: _Seen, part: str) -> Spans:
    parts = _form(kind).match(match.string, match.start())
    assert parts is not None, "the same form matched there before"
    given = {name: value.lower() for name, value in parts.groupdict().items() if value}
    try:
        spans = _MEANINGS[kind](given, seen) if kind in _MEANINGS else _named(parts.group().lower(), seen)
    except (OverflowError, ValueError):  # 31 February, or outside of the years 1 to 9999
        return ()
    return tuple(_part(span, part) for span in spans) if part else spans


def _related(relation: str, spans: Spans, now: datetime) -> Spans:
    """What "since", "before" and the like make of a period. Of several, the latest past one bounds it."""
    if relation not in ("since", "after", "before", "prior to", "until", "till"):
        return spans
    past = [span for span in spans if span.start is None or span.start <= now]
    start, end = (past or list(spans))[-1]
    if relation == "since":
        return (Span(start, None),)
    if relation == "after":
        return (Span(end, None),)
    return (Span(None, end if relation in ("until", "till") else start),)


def _closed(first: Expression, ends: Spans, match: re.Match[str], text: str) -> Expression:
    """ "between March and May": each beginning with the first end behind it."""
    spans = tuple(
        Span(span.start, end)
        for span in first.spans
        if (end := next((other.end for other in ends if _before(span.start, other.end)), None)) is not None
    )
    return first._replace(text=text[first.start : match.end()], stop=match.end(), spans=spans or first.spans)


def _part(span: Span, part: str) -> Span:
    """The first, middle or last third."""
    if span.start is None or span.end is None:
        return span
    third = (span.end - span.start) / 3
    if part in ("early", "start of", "beginning of"):
        return Span(span.start, span.start + third)
    if part in ("late", "end of"):
        return Span(span.end - third, span.end)
    return Span(span.start + third, span.end - third)


def _days(start: datetime, count: int = 1) -> Span:
    return Span(start, start + count * DAY)


def _months(year: int, month: int, count: int = 1) -> Span:
    """Of `count` months; a month below 1 or above 12 is one of another year."""
    return Span(_first_of(year, month), _first_of(year, month + count))


def _first_of(year: int, month: int) -> datetime:
    years, index = divmod(month - 1, 12)
    return datetime(year + years, index + 1, 1)


def _month_of(name: str) -> int:
    return _MONTHS.index(name[:3]) + 1


def _in_years(of: Callable[[int], Span], seen: _Seen, given: dict[str, str]) -> Spans:
    """In the year that is given; without one the latest that has begun, the next, or both where it is unsure."""
    if "year" in given:
        return (of(int(given["year"])),)
    spans = []
    for year in range(seen.now.year - 4, seen.now.year + 5):  # 29 February comes every four years
        try:
            spans.append(of(year))
        except ValueError:
            continue
    return _by_tense(spans, seen)


def _by_tense(spans: list[Span], seen: _Seen) -> Spans:
    begun = [span for span in spans if span.start is not None and span.start <= seen.now][-1:]
    ahead = [span for span in spans if span.start is not None and span.end is not None and span.end > seen.now][:1]
    if seen.tense < 0:
        return tuple(begun or ahead)
    if seen.tense > 0:
        return tuple(ahead or begun)
    return tuple(dict.fromkeys((*begun, *ahead)))


def _iso(given: dict[str, str], seen: _Seen) -> Spans:
    year, month = int(given["year"]), int(given["number"])
    return (_days(datetime(year, month, int(given["day"]))) if "day" in given else _months(year, month),)


def _numbers(given: dict[str, str], seen: _Seen) -> Spans:
    """3.11.2026 has the day first; of 3/11/2026 nobody knows, so both count."""
    year, one, two = (int(given[name]) for name in ("year", "one", "two"))
    orders = {(one, two)} if given["sign"] == "." else {(one, two), (two, one)}
    return tuple(_days(datetime(year, month, day)) for day, month in sorted(orders) if month <= 12)


def _date(given: dict[str, str], seen: _Seen) -> Spans:
    month, day = _month_of(given["month"]), int(given["day"])
    spans = _in_years(lambda year: _days(datetime(year, month, day)), seen, given)
    if "weekday" not in given or "year" in given:
        return spans
    weekday = _WEEKDAYS.index(given["weekday"][:3])
    every = _in_years(lambda year: _on_weekday(datetime(year, month, day), weekday), seen, given)
    return every or spans


def _on_weekday(day: datetime, weekday: int) -> Span:
    if day.weekday() != weekday:
        raise ValueError(f"{day:%d %B %Y} is another day of the week")
    return _days(day)


def _date_range(given: dict[str, str], seen: _Seen) -> Spans:
    month, first, last = _month_of(given["month"]), int(given["day"]), int(given["last"])
    return _in_years(lambda year: Span(datetime(year, month, first), datetime(year, month, last) + DAY), seen, given)


def _month_form(given: dict[str, str], seen: _Seen) -> Spans:
    return _in_years(lambda year: _months(year, _month_of(given["month"])), seen, given)


def _quarter(given: dict[str, str], seen: _Seen) -> Spans:
    number = int(given["quarter"]) if "quarter" in given else _QUARTERS.index(given["ordinal"]) + 1
    return _in_years(lambda year: _months(year, 3 * number - 2, 3), seen, given)


def _season_form(given: dict[str, str], seen: _Seen) -> Spans:
    first = _SEASONS[given["season"]]
    spans = _in_years(lambda year: _months(year, first, 3), seen, given)
    if first == 12 and "year" in given:  # of the winter of 2025 nobody knows which of the two
        return (_months(int(given["year"]) - 1, 12, 3), *spans)
    return spans


def _year_form(given: dict[str, str], seen: _Seen) -> Spans:
    return (_months(int(given["year"]), 1, 12),)


def _weekday_form(given: dict[str, str], seen: _Seen) -> Spans:
    weekday = _WEEKDAYS.index(given["weekday"][:3])
    back = (seen.today.weekday() - weekday - 1) % 7 + 1  # never today: that would be called today
    ahead = (weekday - seen.today.weekday() - 1) % 7 + 1
    last, following = _days(seen.today - back * DAY), _days(seen.today + ahead * DAY)
    return (last,) if seen.tense < 0 else (following,) if seen.tense > 0 else (last, following)


def _weekend(given: dict[str, str], seen: _Seen) -> Spans:
    weeks = [_days(seen.monday + (7 * week + 5) * DAY, 2) for week in (-1, 0)]
    return _by_tense(weeks, seen)


def _part_of_day(given: dict[str, str], seen: _Seen) -> Spans:
    day = seen.today + {"last": -1, "yesterday": -1, "this": 0, "tomorrow": 1}[given["which"]] * DAY
    start, end = _HOURS[given["hours"]]
    return (Span(day + timedelta(hours=start), day + timedelta(hours=end)),)


def _named(text: str, seen: _Seen) -> Spans:
    """The forms without parts."""
    if "before yesterday" in text or "after tomorrow" in text:
        return (_days(seen.today + (-2 if "before" in text else 2) * DAY),)
    if text in ("yesterday", "today", "tonight", "tomorrow"):
        return (_days(seen.today + {"yesterday": -1, "tomorrow": 1}.get(text, 0) * DAY),)
    return (Span(seen.today - (RECENTLY if text in ("recently", "lately") else 7) * DAY, seen.today + DAY),)


def _shifted(now: datetime, count: int, unit: str) -> datetime:
    if unit in _MONTHS_IN:
        first = _first_of(now.year, now.month + count * _MONTHS_IN[unit])
        last_day = (_first_of(first.year, first.month + 1) - DAY).day
        return now.replace(year=first.year, month=first.month, day=min(now.day, last_day))
    return now + count * timedelta(**{f"{unit}s": 1})


def _counted(given: dict[str, str]) -> int:
    count = given.get("count", "1")
    return int(count) if count.isdigit() else _COUNTS[count]


def _around(given: dict[str, str], seen: _Seen, sign: int) -> Spans:
    unit = given["unit"]
    middle, slack = _shifted(seen.now, sign * _counted(given), unit), _SLACK[unit]
    if slack < DAY and unit != "day":
        return (Span(middle - slack, middle + slack),)
    day = middle.replace(hour=0, minute=0, second=0, microsecond=0)
    return (Span(day - slack, day + slack + DAY),)


def _ago(given: dict[str, str], seen: _Seen) -> Spans:
    return _around(given, seen, -1)


def _ahead(given: dict[str, str], seen: _Seen) -> Spans:
    return _around(given, seen, 1)


def _rolling(given: dict[str, str], seen: _Seen) -> Spans:
    start = _shifted(seen.now, -_counted(given), given["unit"])
    if given["unit"] not in ("minute", "hour"):
        start = start.replace(hour=0, minute=0, second=0, microsecond=0)
    return (Span(start, seen.today + DAY),)


def _before_last(given: dict[str, str], seen: _Seen) -> Spans:
    return (_calendar(given["unit"], -2, seen),)


def _calendar(unit: str, step: int, seen: _Seen) -> Span:
    """The day, week, month, quarter or year of the calendar that lies so many steps from now."""
    if unit == "day":
        return _days(seen.today + step * DAY)
    if unit in ("week", "weekend"):
        monday = seen.monday + 7 * step * DAY
        return _days(monday, 7) if unit == "week" else _days(monday + 5 * DAY, 2)
    count = _MONTHS_IN[unit]
    return _months(seen.now.year, (seen.now.month - 1) // count * count + 1 + step * count, count)


def _relative(given: dict[str, str], seen: _Seen) -> Spans:
    which = given["which"]
    step = {"last": -1, "previous": -1, "this past": -1, "next": 1, "coming": 1}.get(which, 0)
    if "unit" in given:
        return (_calendar(given["unit"], step, seen),)
    if "weekday" in given:
        return _relative_weekday(given, step, seen)
    form = _month_form if "month" in given else _season_form
    if step == 0:
        return form(given, _Seen(seen.now, 0))[-1:]
    if step > 0:
        return tuple(span for span in form(given, _Seen(seen.now, 1)) if span.start and span.start > seen.now) or form(
            given, _Seen(_shifted(seen.now, 1, "year"), -1)
        )
    over = [span for span in form(given, _Seen(seen.now, -1)) if span.end and span.end <= seen.now]
    return tuple(over) or form(given, _Seen(_shifted(seen.now, -1, "year"), -1))


def _relative_weekday(given: dict[str, str], step: int, seen: _Seen) -> Spans:
    if step:
        return _weekday_form(given, _Seen(seen.now, step))
    return (_days(seen.monday + _WEEKDAYS.index(given["weekday"][:3]) * DAY),)


_MEANINGS: dict[str, Callable[[dict[str, str], _Seen], Spans]] = {
    "iso": _iso,
    "numbers": _numbers,
    "days": _date_range,
    "day_month": _date,
    "month_day": _date,
    "month_year": _month_form,
    "quarter": _quarter,
    "season": _season_form,
    "part_of_day": _part_of_day,
    "ago": _ago,
    "ahead": _ahead,
    "rolling": _rolling,
    "before_last": _before_last,
    "relative": _relative,
    "weekend": _weekend,
    "weekday": _weekday_form,
    "month": _month_form,
    "year": _year_form,
}


def described(span: Span) -> str:
    """A span as a person writes it, such as "2-8 November 2026", "March 2026" or "from 9 November 2026"."""
    start, end = span
    if start is None or end is None:
        return f"from {_written(start)}" if start else f"before {_written(end)}" if end else "ever"
    last = end - timedelta(microseconds=1)
    if start.day == 1 and end.day == 1 and end.hour == 0:
        if (start.year, start.month) == (last.year, last.month):
            return f"{start:%B %Y}"
        return f"{start:%B}-{last:%B %Y}" if start.year == last.year else f"{start:%B %Y} to {last:%B %Y}"
    if start.date() == last.date():
        return _written(start)
    if (start.year, start.month) == (last.year, last.month):
        return f"{start.day}-{last.day} {start:%B %Y}"
    return f"{_written(start)} to {_written(last)}"


def _written(day: datetime | None) -> str:
    return f"{day.day} {day:%B %Y}" if day else ""
