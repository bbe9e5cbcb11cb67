"""What each form of an expression of time means, as spans of the calendar seen from a moment."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from trivet.dates.forms import COUNTS, QUARTERS, SEASONS
from trivet.dates.spans import DAY, MONTHS_IN, Seen, Span, Spans, days, months, shifted

# How many days "recently" and "the other day" reach back.
RECENTLY = 14
THE_OTHER_DAY = 7

# A date ahead that is so many times nearer counts too, whatever the tense: "did we swap the night of 21 November?"
MUCH_NEARER = 3

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_WEEKDAYS = "mon tue wed thu fri sat sun".split()
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


def _month_of(name: str) -> int:
    return _MONTHS.index(name[:3]) + 1


def _in_years(of: Callable[[int], Span], seen: Seen, given: dict[str, str]) -> Spans:
    """In the year that is given; without one the latest that has begun, the next, or both where it is unsure."""
    if year := given.get("year") or seen.year:
        return (of(int(year)),)
    spans = []
    for year in range(seen.now.year - 4, seen.now.year + 5):  # 29 February comes every four years
        try:
            spans.append(of(year))
        except ValueError:
            continue
    return _by_tense(spans, seen)


def _by_tense(spans: list[Span], seen: Seen) -> Spans:
    begun = [span for span in spans if span.start is not None and span.start <= seen.now][-1:]
    ahead = [span for span in spans if span.start is not None and span.end is not None and span.end > seen.now][:1]
    if seen.tense > 0 or not begun:
        return tuple(ahead or begun)
    if seen.tense < 0:
        return tuple(begun + [span for span in ahead if _is_nearer(span, begun[0], seen.now, MUCH_NEARER)])
    if seen.nearest:
        return tuple([span for span in ahead if _is_nearer(span, begun[0], seen.now, 1)] or begun)
    return tuple(dict.fromkeys((*begun, *ahead)))


def _is_nearer(ahead: Span, begun: Span, now: datetime, times: int) -> bool:
    if ahead == begun or ahead.start is None or begun.end is None:
        return False
    return times * (ahead.start - now) < now - begun.end


def _iso(given: dict[str, str], seen: Seen) -> Spans:
    year, month = int(given["year"]), int(given["number"])
    return (days(datetime(year, month, int(given["day"]))) if "day" in given else months(year, month),)


def _numbers(given: dict[str, str], seen: Seen) -> Spans:
    """3.11.2026 has the day first; of 3/11/2026 nobody knows, so both count."""
    year, one, two = (int(given[name]) for name in ("year", "one", "two"))
    orders = {(one, two)} if given["sign"] == "." else {(one, two), (two, one)}
    return tuple(days(datetime(year, month, day)) for day, month in sorted(orders) if month <= 12)


def _date(given: dict[str, str], seen: Seen) -> Spans:
    month, day = _month_of(given["month"]), int(given["day"])
    spans = _in_years(lambda year: days(datetime(year, month, day)), seen, given)
    if "weekday" not in given or "year" in given:
        return spans
    weekday = _WEEKDAYS.index(given["weekday"][:3])
    every = _in_years(lambda year: _on_weekday(datetime(year, month, day), weekday), seen, given)
    return every or spans


def _on_weekday(day: datetime, weekday: int) -> Span:
    if day.weekday() != weekday:
        raise ValueError(f"{day:%d %B %Y} is another day of the week")
    return days(day)


def _date_range(given: dict[str, str], seen: Seen) -> Spans:
    month, first, last = _month_of(given["month"]), int(given["day"]), int(given["last"])
    return _in_years(lambda year: Span(datetime(year, month, first), datetime(year, month, last) + DAY), seen, given)


def _month_form(given: dict[str, str], seen: Seen) -> Spans:
    return _in_years(lambda year: months(year, _month_of(given["month"])), seen, given)


def _quarter(given: dict[str, str], seen: Seen) -> Spans:
    number = int(given["quarter"]) if "quarter" in given else QUARTERS.index(given["ordinal"]) + 1
    return _in_years(lambda year: months(year, 3 * number - 2, 3), seen, given)


def _season_form(given: dict[str, str], seen: Seen) -> Spans:
    first = SEASONS[given["season"]]
    spans = _in_years(lambda year: months(year, first, 3), seen, given)
    if first == 12 and "year" in given:  # of the winter of 2025 nobody knows which of the two
        return (months(int(given["year"]) - 1, 12, 3), *spans)
    return spans


def _week_of_month(given: dict[str, str], seen: Seen) -> Spans:
    """Seven days each; the last one ends with the month."""
    ends = [span.end for span in _month_form(given, seen) if span.end]
    if given["which"] == "last":
        return tuple(Span(end - 7 * DAY, end) for end in ends)
    skipped = 7 * QUARTERS.index(given["which"]) * DAY
    starts = [span.start for span in _month_form(given, seen) if span.start]
    return tuple(days(start + skipped, 7) for start in starts)


def _week_of_day(given: dict[str, str], seen: Seen) -> Spans:
    starts = [span.start for span in _date(given, seen) if span.start]
    return tuple(days(start - start.weekday() * DAY, 7) for start in starts)


def _year_form(given: dict[str, str], seen: Seen) -> Spans:
    return (months(int(given["year"]), 1, 12),)


def _weekday_form(given: dict[str, str], seen: Seen) -> Spans:
    weekday = _WEEKDAYS.index(given["weekday"][:3])
    back = (seen.today.weekday() - weekday - 1) % 7 + 1  # never today: that would be called today
    ahead = (weekday - seen.today.weekday() - 1) % 7 + 1
    last, following = days(seen.today - back * DAY), days(seen.today + ahead * DAY)
    return (last,) if seen.tense < 0 else (following,) if seen.tense > 0 else (last, following)


def _weekend(given: dict[str, str], seen: Seen) -> Spans:
    weeks = [days(seen.monday + (7 * week + 5) * DAY, 2) for week in (-1, 0)]
    return _by_tense(weeks, seen)


def _part_of_day(given: dict[str, str], seen: Seen) -> Spans:
    day = seen.today + {"last": -1, "yesterday": -1, "this": 0, "tomorrow": 1}[given["which"]] * DAY
    start, end = _HOURS[given["hours"]]
    return (Span(day + timedelta(hours=start), day + timedelta(hours=end)),)


def named(text: str, seen: Seen) -> Spans:
    """The forms without parts."""
    if text == "now":
        return (Span(seen.now, seen.now),)
    if "before yesterday" in text or "after tomorrow" in text:
        return (days(seen.today + (-2 if "before" in text else 2) * DAY),)
    if text in ("yesterday", "today", "tonight", "tomorrow"):
        return (days(seen.today + {"yesterday": -1, "tomorrow": 1}.get(text, 0) * DAY),)
    return (Span(seen.today - (RECENTLY if text in ("recently", "lately") else THE_OTHER_DAY) * DAY, seen.today + DAY),)


def _counted(given: dict[str, str]) -> int:
    count = given.get("count", "1")
    return int(count) if count.isdigit() else COUNTS[count]


def _around(given: dict[str, str], seen: Seen, sign: int) -> Spans:
    unit = given["unit"]
    middle, slack = shifted(seen.now, sign * _counted(given), unit), _SLACK[unit]
    if slack < DAY and unit != "day":
        return (Span(middle - slack, middle + slack),)
    day = middle.replace(hour=0, minute=0, second=0, microsecond=0)
    return (Span(day - slack, day + slack + DAY),)


def _ago(given: dict[str, str], seen: Seen) -> Spans:
    return _around(given, seen, -1)


def _ahead(given: dict[str, str], seen: Seen) -> Spans:
    return _around(given, seen, 1)


def _rolling(given: dict[str, str], seen: Seen) -> Spans:
    start = shifted(seen.now, -_counted(given), given["unit"])
    if given["unit"] not in ("minute", "hour"):
        start = start.replace(hour=0, minute=0, second=0, microsecond=0)
    return (Span(start, seen.today + DAY),)


def _before_last(given: dict[str, str], seen: Seen) -> Spans:
    return (_calendar(given["unit"], -2, seen),)


def _calendar(unit: str, step: int, seen: Seen) -> Span:
    """The day, week, month, quarter or year of the calendar that lies so many steps from now."""
    if unit == "day":
        return days(seen.today + step * DAY)
    if unit in ("week", "weekend"):
        monday = seen.monday + 7 * step * DAY
        return days(monday, 7) if unit == "week" else days(monday + 5 * DAY, 2)
    count = MONTHS_IN[unit]
    return months(seen.now.year, (seen.now.month - 1) // count * count + 1 + step * count, count)


def _relative(given: dict[str, str], seen: Seen) -> Spans:
    which = given["which"]
    step = {"last": -1, "previous": -1, "this past": -1, "next": 1, "coming": 1, "this coming": 1}.get(which, 0)
    if "unit" in given:
        return (_calendar(given["unit"], step, seen),)
    if "weekday" in given:
        return _relative_weekday(given, step, seen)
    form = _month_form if "month" in given else _season_form
    if step == 0:
        return form(given, Seen(seen.now, 0))[-1:]
    if step > 0:
        return tuple(span for span in form(given, Seen(seen.now, 1)) if span.start and span.start > seen.now) or form(
            given, Seen(shifted(seen.now, 1, "year"), -1)
        )
    over = [span for span in form(given, Seen(seen.now, -1)) if span.end and span.end <= seen.now]
    return tuple(over) or form(given, Seen(shifted(seen.now, -1, "year"), -1))


def _relative_weekday(given: dict[str, str], step: int, seen: Seen) -> Spans:
    if step:
        return _weekday_form(given, Seen(seen.now, step))
    return (days(seen.monday + _WEEKDAYS.index(given["weekday"][:3]) * DAY),)


MEANINGS: dict[str, Callable[[dict[str, str], Seen], Spans]] = {
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
