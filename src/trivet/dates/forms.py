"""The written forms of time expressions, in lowercase, and the spans each means."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache

from trivet.dates.spans import (
    DAY,
    MONTHS_IN,
    ReferenceTime,
    Span,
    Spans,
    choose_by_tense,
    days,
    months,
    shift_time,
    spans_by_year,
)

_NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()
COUNTS = {"a": 1, "an": 1, "a couple of": 2, "couple of": 2, "a few": 3, "few": 3, "several": 4} | {
    word: number for number, word in enumerate(_NUMBERS, 1)
}
# The first month of each in the northern hemisphere; winter extends into the next year.
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
QUARTERS = ("first", "second", "third", "fourth")

_month = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
)
_weekday = (
    r"(?P<weekday>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs(?:day)?)?"
    r"|fri(?:day)?|saturday|sunday)\b"
)
_season = rf"(?P<season>{'|'.join(SEASONS)})\b"
_day = r"(?P<day>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?"
_year = r"(?P<year>(?:19|20)\d\d)(?!\d)"
_count = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted(COUNTS, key=len, reverse=True))})"
_unit = r"(?P<unit>minute|hour|day|week|month|quarter|year)s?\b"

# In matching order: a form precedes those that match its beginning.
_FORMS = {
    "iso": r"(?P<year>(?:19|20)\d\d)[-/](?P<number>0[1-9]|1[0-2])"
    r"(?:[-/](?P<day>[12]\d|3[01]|0[1-9]))?(?![-/\d])",
    "numbers": r"(?P<one>\d{1,2})(?P<sign>[./])(?P<two>\d{1,2})[./]"
    r"(?P<year>(?:19|20)\d\d)(?![\w/])",
    "days": rf"{_day} ?(?:-|–|to|and) ?(?P<last>[12]\d|3[01]|[1-9])(?:st|nd|rd|th)? "
    rf"(?:of )?{_month}(?:,? {_year})?",
    "day_month": rf"(?:(?:last |this |next )?{_weekday},? (?:the )?)?"
    rf"{_day}\.? (?:of )?{_month}(?:\.?,? {_year})?",
    "month_day": rf"(?:(?:last |this |next )?{_weekday},? )?"
    rf"{_month}\.? (?:the )?{_day}\b(?:,? {_year})?",
    "month_year": rf"{_month}\.?,? (?:of )?{_year}",
    "week_of_month": rf"(?P<which>{'|'.join(QUARTERS)}|last) week "
    rf"(?:of|in) {_month}(?:,? {_year})?",
    "week_of_day": rf"(?:the )?week of (?:the )?{_day} (?:of )?{_month}(?:,? {_year})?",
    "quarter": rf"(?:q(?P<quarter>[1-4])"
    rf"|(?P<ordinal>{'|'.join(QUARTERS)}) quarter)\b(?:,? (?:of )?{_year})?",
    "season": rf"{_season}(?:,? (?:of )?{_year})?"
    r"(?! (?:boot|framework|data|security|cloud|mvc|cleaning)\b)",
    "part_of_day": r"(?P<which>this|yesterday|tomorrow|last) "
    r"(?P<hours>morning|afternoon|evening|night)\b",
    "named_day": r"(?:(?:the )?day (?:before yesterday|after tomorrow)"
    r"|yesterday|today|tonight|tomorrow)\b",
    "vague": r"(?:recently|lately|the other day)\b",
    "ago": rf"(?:about |around |some )?{_count} {_unit} (?:ago|back|earlier)\b",
    "ahead": rf"in (?!an? [dwm]){_count} (?P<unit>day|week|month)s?\b(?! of)",
    "rolling": rf"(?:(?:the )?(?:last|past|previous) {_count}|the (?:last|past)|past) {_unit}",
    "before_last": rf"(?:the )?{_unit} before last\b",
    "relative": r"(?P<which>last|previous|this past|this coming|this|current|next|coming) "
    rf"(?:(?P<unit>weekend|week|month|quarter|year)\b|{_weekday}|{_month}|{_season})",
    "now": r"now\b",
    "weekend": r"the weekend\b",
    "weekday": rf"{_weekday}(?! (?:morning|afternoon|evening|night)s\b)",
    "month": _month,
    "year": rf"{_year}(?![-/.:,]\d)",
}
# The possible starts of all forms: rejects most positions of a text in a third of the time.
_BEGINS = (
    r"(?<![\w.])(?=\d|ja|fe|ma|ap|ju|au|se|oc|no|de|mo|tu|we|thu|fr|sat|sun|q[1-4]\b|fi|th|fo|sp"
    r"|fa|wi|su|ye|to[dmn]"
    r"|the |day |re|la|pa|pr|cu|ne|co|ab|ar|so|an? |on|tw|si|ei|ni|te|el|in |quarter |hour|minute)"
)
# Forms with digits or a month, which may occur verbatim in a memory.
SPELLED = frozenset(
    "iso numbers days day_month month_day month_year week_of_month week_of_day quarter season "
    "month year".split()
)


@cache
def any_form() -> re.Pattern[str]:
    """Return all forms as one pattern; parts lose their names, which must be unique."""
    nameless = {kind: re.sub(r"\(\?P<\w+>", "(?:", form) for kind, form in _FORMS.items()}
    forms = "|".join(f"(?P<{kind}>{form})" for kind, form in nameless.items())
    return re.compile(rf"{_BEGINS}(?:{forms})")


@cache
def form(kind: str) -> re.Pattern[str]:
    return re.compile(_FORMS[kind])


RECENTLY = 14
THE_OTHER_DAY = 7

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_WEEKDAYS = "mon tue wed thu fri sat sun".split()
_HOURS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 30)}
# How much "N units ago" may be off to either side.
_SLACK = {
    "minute": timedelta(minutes=10),
    "hour": timedelta(hours=1),
    "day": timedelta(),
    "week": 4 * DAY,
    "month": 16 * DAY,
    "quarter": 46 * DAY,
    "year": 183 * DAY,
}


def _month_of(name: str) -> int:
    return _MONTHS.index(name[:3]) + 1


def _iso(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    year, month = int(given["year"]), int(given["number"])
    return (
        days(datetime(year, month, int(given["day"]))) if "day" in given else months(year, month),
    )


def _numbers(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    """Read 3.11.2026 as day first; 3/11/2026 is ambiguous, so both count."""
    year, one, two = (int(given[name]) for name in ("year", "one", "two"))
    orders = {(one, two)} if given["sign"] == "." else {(one, two), (two, one)}
    return tuple(days(datetime(year, month, day)) for day, month in sorted(orders) if month <= 12)


def _date(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    month, day = _month_of(given["month"]), int(given["day"])
    spans = spans_by_year(lambda year: days(datetime(year, month, day)), reference_time, given)
    if "weekday" not in given or "year" in given:
        return spans
    weekday = _WEEKDAYS.index(given["weekday"][:3])
    every = spans_by_year(
        lambda year: _on_weekday(datetime(year, month, day), weekday), reference_time, given
    )
    return every or spans


def _on_weekday(day: datetime, weekday: int) -> Span:
    if day.weekday() != weekday:
        raise ValueError(f"{day:%d %B %Y} is not that day of the week")
    return days(day)


def _date_range(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    month, first, last = _month_of(given["month"]), int(given["day"]), int(given["last"])
    return spans_by_year(
        lambda year: Span(datetime(year, month, first), datetime(year, month, last) + DAY),
        reference_time,
        given,
    )


def _month_form(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    return spans_by_year(
        lambda year: months(year, _month_of(given["month"])), reference_time, given
    )


def _quarter(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    number = int(given["quarter"]) if "quarter" in given else QUARTERS.index(given["ordinal"]) + 1
    return spans_by_year(lambda year: months(year, 3 * number - 2, 3), reference_time, given)


def _season_form(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    first = SEASONS[given["season"]]
    spans = spans_by_year(lambda year: months(year, first, 3), reference_time, given)
    if first == 12 and "year" in given:  # the winter of 2025 may start in 2024 or 2025
        return (months(int(given["year"]) - 1, 12, 3), *spans)
    return spans


def _week_of_month(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    ends = [span.end for span in _month_form(given, reference_time) if span.end]
    if given["which"] == "last":
        return tuple(Span(end - 7 * DAY, end) for end in ends)
    skipped = 7 * QUARTERS.index(given["which"]) * DAY
    starts = [span.start for span in _month_form(given, reference_time) if span.start]
    return tuple(days(start + skipped, 7) for start in starts)


def _week_of_day(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    starts = [span.start for span in _date(given, reference_time) if span.start]
    return tuple(days(start - start.weekday() * DAY, 7) for start in starts)


def _year_form(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    return (months(int(given["year"]), 1, 12),)


def _weekday_form(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    weekday = _WEEKDAYS.index(given["weekday"][:3])
    # Never today, which people call "today".
    back = (reference_time.today.weekday() - weekday - 1) % 7 + 1
    ahead = (weekday - reference_time.today.weekday() - 1) % 7 + 1
    last, following = (
        days(reference_time.today - back * DAY),
        days(reference_time.today + ahead * DAY),
    )
    return (
        (last,)
        if reference_time.tense < 0
        else (following,)
        if reference_time.tense > 0
        else (last, following)
    )


def _weekend(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    weeks = [days(reference_time.monday + (7 * week + 5) * DAY, 2) for week in (-1, 0)]
    return choose_by_tense(weeks, reference_time)


def _part_of_day(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    day = (
        reference_time.today
        + {"last": -1, "yesterday": -1, "this": 0, "tomorrow": 1}[given["which"]] * DAY
    )
    start, end = _HOURS[given["hours"]]
    return (Span(day + timedelta(hours=start), day + timedelta(hours=end)),)


def named(text: str, reference_time: ReferenceTime) -> Spans:
    """Return the spans of forms without parts, such as "yesterday"."""
    if text == "now":
        return (Span(reference_time.now, reference_time.now),)
    if "before yesterday" in text or "after tomorrow" in text:
        return (days(reference_time.today + (-2 if "before" in text else 2) * DAY),)
    if text in ("yesterday", "today", "tonight", "tomorrow"):
        return (days(reference_time.today + {"yesterday": -1, "tomorrow": 1}.get(text, 0) * DAY),)
    return (
        Span(
            reference_time.today
            - (RECENTLY if text in ("recently", "lately") else THE_OTHER_DAY) * DAY,
            reference_time.today + DAY,
        ),
    )


def _counted(given: dict[str, str]) -> int:
    count = given.get("count", "1")
    return int(count) if count.isdigit() else COUNTS[count]


def _around(given: dict[str, str], reference_time: ReferenceTime, sign: int) -> Spans:
    unit = given["unit"]
    middle, slack = shift_time(reference_time.now, sign * _counted(given), unit), _SLACK[unit]
    if slack < DAY and unit != "day":
        return (Span(middle - slack, middle + slack),)
    day = middle.replace(hour=0, minute=0, second=0, microsecond=0)
    return (Span(day - slack, day + slack + DAY),)


def _ago(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    return _around(given, reference_time, -1)


def _ahead(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    return _around(given, reference_time, 1)


def _rolling(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    start = shift_time(reference_time.now, -_counted(given), given["unit"])
    if given["unit"] not in ("minute", "hour"):
        start = start.replace(hour=0, minute=0, second=0, microsecond=0)
    return (Span(start, reference_time.today + DAY),)


def _before_last(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    return (_calendar(given["unit"], -2, reference_time),)


def _calendar(unit: str, step: int, reference_time: ReferenceTime) -> Span:
    if unit == "day":
        return days(reference_time.today + step * DAY)
    if unit in ("week", "weekend"):
        monday = reference_time.monday + 7 * step * DAY
        return days(monday, 7) if unit == "week" else days(monday + 5 * DAY, 2)
    count = MONTHS_IN[unit]
    return months(
        reference_time.now.year,
        (reference_time.now.month - 1) // count * count + 1 + step * count,
        count,
    )


def _relative(given: dict[str, str], reference_time: ReferenceTime) -> Spans:
    which = given["which"]
    step = {
        "last": -1,
        "previous": -1,
        "this past": -1,
        "next": 1,
        "coming": 1,
        "this coming": 1,
    }.get(which, 0)
    if "unit" in given:
        return (_calendar(given["unit"], step, reference_time),)
    if "weekday" in given:
        return _relative_weekday(given, step, reference_time)
    form = _month_form if "month" in given else _season_form
    if step == 0:
        return form(given, ReferenceTime(reference_time.now, 0))[-1:]
    if step > 0:
        return tuple(
            span
            for span in form(given, ReferenceTime(reference_time.now, 1))
            if span.start and span.start > reference_time.now
        ) or form(given, ReferenceTime(shift_time(reference_time.now, 1, "year"), -1))
    over = [
        span
        for span in form(given, ReferenceTime(reference_time.now, -1))
        if span.end and span.end <= reference_time.now
    ]
    return tuple(over) or form(given, ReferenceTime(shift_time(reference_time.now, -1, "year"), -1))


def _relative_weekday(given: dict[str, str], step: int, reference_time: ReferenceTime) -> Spans:
    if step:
        return _weekday_form(given, ReferenceTime(reference_time.now, step))
    return (days(reference_time.monday + _WEEKDAYS.index(given["weekday"][:3]) * DAY),)


MEANINGS: dict[str, Callable[[dict[str, str], ReferenceTime], Spans]] = {
    "iso": _iso,
    "numbers": _numbers,
    "days": _date_range,
    "day_month": _date,
    "month_day": _date,
    "month_year": _month_form,
    "week_of_month": _week_of_month,
    "week_of_day": _week_of_day,
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
