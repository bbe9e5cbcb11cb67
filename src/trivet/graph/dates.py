"""Dates in running text, however they are spelled: `2024-03-05`, `5 March 2024`, `March 5th, 2024`, `March 2024`."""

from __future__ import annotations

import re

_MONTHS = "january february march april may june july august september october november december".split()
_month = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS if name != "may") + "|may|sept"
_day = r"(?P<day>0?[1-9]|[12]\d|3[01])"
_year = r"(?P<year>(?:19|20)\d\d)"
_SPELLINGS = (
    re.compile(rf"\b{_year}-(?P<month>0[1-9]|1[0-2])-{_day}\b"),
    re.compile(rf"\b{_year}-(?P<month>0[1-9]|1[0-2])\b(?!-\d)"),
    re.compile(rf"\b{_day}(?:st|nd|rd|th|\.)?(?: of)? (?P<month>{_month})\.?,? {_year}\b", re.IGNORECASE),
    re.compile(rf"\b(?P<month>{_month})\.? {_day}(?:st|nd|rd|th)?,? {_year}\b", re.IGNORECASE),
    re.compile(rf"\b(?P<month>{_month})\.?,? {_year}\b", re.IGNORECASE),
)


def dates_in(text: str) -> tuple[list[str], str]:
    """The dates as ISO dates or months, and the text without them, so that nothing else is made of their parts."""
    dates: list[str] = []

    def take(match: re.Match[str]) -> str:
        parts = match.groupdict()
        day = f"-{int(parts['day']):02d}" if parts.get("day") else ""
        dates.append(f"{parts['year']}-{_number(parts['month'])}{day}")
        return " , "  # a comma, so that the words on both sides do not grow together

    for spelling in _SPELLINGS:
        text = spelling.sub(take, text)
    return dates, text


def _number(month: str) -> str:
    if month.isdigit():
        return month
    return f"{next(place for place, name in enumerate(_MONTHS, 1) if name.startswith(month[:3].lower())):02d}"
