"""How expressions of time are written, in small letters. None of the patterns repeats without bound."""

from __future__ import annotations

import re
from functools import cache

_NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()
COUNTS = {"a": 1, "an": 1, "a couple of": 2, "couple of": 2, "a few": 3, "few": 3, "several": 4} | {
    word: number for number, word in enumerate(_NUMBERS, 1)
}
# The first month of each, as on the northern half of the earth; winter reaches into the next year.
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
QUARTERS = ("first", "second", "third", "fourth")

_month = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
)
_weekday = r"(?P<weekday>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs(?:day)?)?|fri(?:day)?|saturday|sunday)\b"
_season = rf"(?P<season>{'|'.join(SEASONS)})\b"
_day = r"(?P<day>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?"
_year = r"(?P<year>(?:19|20)\d\d)(?!\d)"
_count = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted(COUNTS, key=len, reverse=True))})"
_unit = r"(?P<unit>minute|hour|day|week|month|quarter|year)s?\b"

# In the order in which they are tried at a place: a longer one stands before what is its beginning.
_FORMS = {
    "iso": r"(?P<year>(?:19|20)\d\d)[-/](?P<number>0[1-9]|1[0-2])(?:[-/](?P<day>[12]\d|3[01]|0[1-9]))?(?![-/\d])",
    "numbers": r"(?P<one>\d{1,2})(?P<sign>[./])(?P<two>\d{1,2})[./](?P<year>(?:19|20)\d\d)(?![\w/])",
    "days": rf"{_day} ?(?:-|–|to|and) ?(?P<last>[12]\d|3[01]|[1-9])(?:st|nd|rd|th)? (?:of )?{_month}(?:,? {_year})?",
    "day_month": rf"(?:(?:last |this |next )?{_weekday},? (?:the )?)?{_day}\.? (?:of )?{_month}(?:\.?,? {_year})?",
    "month_day": rf"(?:(?:last |this |next )?{_weekday},? )?{_month}\.? (?:the )?{_day}\b(?:,? {_year})?",
    "month_year": rf"{_month}\.?,? (?:of )?{_year}",
    "week_of_month": rf"(?P<which>{'|'.join(QUARTERS)}|last) week (?:of|in) {_month}(?:,? {_year})?",
    "week_of_day": rf"(?:the )?week of (?:the )?{_day} (?:of )?{_month}(?:,? {_year})?",
    "quarter": rf"(?:q(?P<quarter>[1-4])|(?P<ordinal>{'|'.join(QUARTERS)}) quarter)\b(?:,? (?:of )?{_year})?",
    "season": rf"{_season}(?:,? (?:of )?{_year})?(?! (?:boot|framework|data|security|cloud|mvc|cleaning)\b)",
    "part_of_day": r"(?P<which>this|yesterday|tomorrow|last) (?P<hours>morning|afternoon|evening|night)\b",
    "named_day": r"(?:(?:the )?day (?:before yesterday|after tomorrow)|yesterday|today|tonight|tomorrow)\b",
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
# With what any of them begins: at most places of a text this settles it, and takes a third of the time.
_BEGINS = (
    r"(?<![\w.])(?=\d|ja|fe|ma|ap|ju|au|se|oc|no|de|mo|tu|we|thu|fr|sat|sun|q[1-4]\b|fi|th|fo|sp|fa|wi|su|ye|to[dmn]"
    r"|the |day |re|la|pa|pr|cu|ne|co|ab|ar|so|an? |on|tw|si|ei|ni|te|el|in |quarter |hour|minute)"
)
# Those that name a date by digits or a month, in words that a memory may hold just so.
SPELLED = frozenset(
    "iso numbers days day_month month_day month_year week_of_month week_of_day quarter season month year".split()
)


@cache
def any_form() -> re.Pattern[str]:
    """All forms as one pattern, made when it is first needed. A name can stand but once in it, so parts lose theirs."""
    nameless = {kind: re.sub(r"\(\?P<\w+>", "(?:", form) for kind, form in _FORMS.items()}
    forms = "|".join(f"(?P<{kind}>{form})" for kind, form in nameless.items())
    return re.compile(rf"{_BEGINS}(?:{forms})")


@cache
def form(kind: str) -> re.Pattern[str]:
    return re.compile(_FORMS[kind])
