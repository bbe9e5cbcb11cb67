"""Finds time expressions and the words that belong to them: "since", "the end of", "between".

Words that are rarely dates ("may", "Sunday", 2025) count only after a word such as "in". Patterns
start at word boundaries with bounded repeats, so the time is linear in the text.
"""

from __future__ import annotations

import re
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from trivet.dates.forms import MEANINGS, SPELLED, any_form, form, named
from trivet.dates.spans import DAY, ReferenceTime, Span, Spans, before, may_mention_time

# Questions are short, and the first dates of a long memory tell its time.
MAX_CHARACTERS_READ = 8_000
MAX_EXPRESSIONS = 16
MAX_MATCHES = 200
# Characters around an expression that show the tense.
TENSE_WINDOW = 60
# Longest words before an expression that belong to it: "until the middle of March".
MAX_LEAD_CHARACTERS = 40

# The words after which a rare date word is a date. After an article it is not: "the May release".
_LEADS = {
    "weekday": frozenset("on since until till before after by from between".split()),
    "month": frozenset("in during since until till before after from between throughout".split()),
    "year": frozenset("in during since until till before after from between throughout".split()),
    "season": frozenset(
        "in during since until till before after from between throughout over".split()
    ),
    "now": frozenset(("between", "from")),
    "weekend": frozenset("at over on during since before after".split()),
}
# "the note from June" may be by a person; the other months are rarely names.
_NAMES = frozenset("jan april may june august".split())
_lead = re.compile(
    r"(?:(?<!\w)(?P<relation>since|until|till|before|after|prior to|between|from|in|on|at|over"
    r"|during|throughout|by) )?"
    r"(?P<article>the )?"
    r"(?:(?<!\w)(?P<part>early|late|mid|middle of|end of|start of|beginning of)[ -](?:in )?)?$",
)
_to = re.compile(r" (?:and|to|until|till|through) (?:the )?| ?[-–] ?")
_past = re.compile(
    r"\b(?:did|didn't|was|were|had|been|used to|decided|happened|said|went|got|came|made|met)\b"
)
_future = re.compile(r"\b(?:will|won't|going to|upcoming|plans?|planned|due|scheduled?|deadline)\b")
# Lines may break anywhere. One character for one, so that positions stay.
_BLANKS = dict.fromkeys(map(ord, "\t\n\r\xa0"), " ")
_again_and_again = re.compile(r"\b(?:every|each|weekly|always|never|usually)\b")
_BOUNDS = frozenset(("since", "after", "before", "prior to", "until", "till"))
_four_digits = re.compile(r"(?<!\d)\d{4}(?!\d)")
_nothing_after = re.compile(r"[\s?!.]*$")


class Expression(NamedTuple):
    """One time expression, with several spans if ambiguous: "in March", the last or the next.

    `spelled`: by digits or month, so it may occur verbatim in a memory. `yearly`: also without a
    year, such as a birthday.
    """

    text: str
    start: int
    stop: int
    spans: Spans
    spelled: bool
    yearly: bool = False


def find_time_expressions(text: str, now: datetime, nearest: bool = False) -> list[Expression]:
    """Return a text's time expressions as meant at `now`, a local time without a zone.

    If two days are possible, both count; with `nearest` only the nearer one.
    """
    if not may_mention_time(text):
        return []
    read = _lowercase(text[:MAX_CHARACTERS_READ])
    found: list[Expression] = []
    open_range = False  # the last one started with "from" or "between" and needs its end
    matches = list(islice(any_form().finditer(read), MAX_MATCHES))
    year = _year_named(matches)
    for match in matches:
        kind = match.lastgroup or ""
        lead = _lead.search(read[max(0, match.start() - MAX_LEAD_CHARACTERS) : match.start()])
        assert lead is not None, "every part of it may be missing"
        closes = open_range and _to.fullmatch(read[found[-1].stop : match.start()]) is not None
        if not closes and not _is_date(kind, match, lead):
            continue
        if len(found) == MAX_EXPRESSIONS:
            break
        relation = lead["relation"] or ""
        reference_time = ReferenceTime(
            now, -1 if relation == "since" else _tense(match), year, nearest
        )
        spans = _spans(kind, match, reference_time, lead["part"] or "")
        if closes:
            found[-1] = _closed(found[-1], spans, match, text)
            open_range = False
        elif spans:
            start = _start(kind, match, lead)
            related = _related(relation, spans, now)
            spelled = kind in SPELLED
            yearly = spelled and year is None and not _four_digits.search(match.group())
            found.append(
                Expression(text[start : match.end()], start, match.end(), related, spelled, yearly)
            )
            open_range = relation in ("from", "between")
    return [expression for expression in found if expression.spans]


def _lowercase(text: str) -> str:
    """Lowercase letter by letter, to keep positions."""
    small = text.lower()
    if len(small) != len(text) or "Σ" in text:  # Σ has another lowercase form at a word's end
        small = "".join(map(_lowercase_letter, text))
    return small.translate(_BLANKS)


def _lowercase_letter(letter: str) -> str:
    small = letter.lower()
    return small if len(small) == 1 else letter


def _is_date(kind: str, match: re.Match[str], lead: re.Match[str]) -> bool:
    if kind not in _LEADS or (kind == "season" and match.group()[-1].isdigit()):
        return True
    if kind == "weekday" and _again_and_again.search(_around(match)):
        return False
    if (
        kind == "weekday"
        and _nothing_after.match(match.string, match.end())
        and _past.search(match.string)
    ):
        return not lead["article"]  # "what did we discuss Friday?"
    relation = lead["relation"] or ""
    if relation == "from" and match.group() in _NAMES:
        return False
    if lead["article"] and kind not in ("season", "weekend") and not lead["part"]:
        return False
    return bool(lead["part"]) or relation in _LEADS[kind]


def _year_named(matches: list[re.Match[str]]) -> int | None:
    """Return the only year that the text's dates name; it applies to the others."""
    years = {
        found.group() for match in matches if match.lastgroup != "year" for found in _years(match)
    }
    return int(years.pop()) if len(years) == 1 else None


def _years(match: re.Match[str]) -> list[re.Match[str]]:
    return list(_four_digits.finditer(match.group()))


def _start(kind: str, match: re.Match[str], lead: re.Match[str]) -> int:
    """Return where its own words begin: in "working on lately" not at "on"."""
    relation = lead["relation"] or ""
    belongs = relation in _BOUNDS if kind in ("named_day", "vague") else relation or lead["part"]
    return match.start() - (lead.end() - lead.start()) if belongs else match.start()


def _around(match: re.Match[str]) -> str:
    return match.string[max(0, match.start() - TENSE_WINDOW) : match.end() + TENSE_WINDOW]


def _tense(match: re.Match[str]) -> int:
    around = _around(match)
    return -1 if _past.search(around) else 1 if _future.search(around) else 0


def _spans(kind: str, match: re.Match[str], reference_time: ReferenceTime, part: str) -> Spans:
    parts = form(kind).match(match.string, match.start())
    assert parts is not None, "the same form matched there before"
    given = {name: value for name, value in parts.groupdict().items() if value}
    try:
        spans = (
            MEANINGS[kind](given, reference_time)
            if kind in MEANINGS
            else named(parts.group(), reference_time)
        )
    except (OverflowError, ValueError):  # 31 February, or outside the years 1 to 9999
        return ()
    return tuple(_part(span, part) for span in spans) if part else spans


def _related(relation: str, spans: Spans, now: datetime) -> Spans:
    """Apply "since", "before" and the like, to the latest past span if there are several."""
    if relation not in _BOUNDS:
        return spans
    past = [span for span in spans if span.start is None or span.start <= now]
    start, end = (past or list(spans))[-1]
    if relation == "since":
        return (
            Span(
                start,
                max(now, start or now).replace(hour=0, minute=0, second=0, microsecond=0) + DAY,
            ),
        )
    if relation == "after":
        return (Span(end, None),)
    return (Span(None, end if relation in ("until", "till") else start),)


def _closed(first: Expression, ends: Spans, match: re.Match[str], text: str) -> Expression:
    spans = tuple(
        Span(span.start, end)
        for span in first.spans
        if (end := next((other.end for other in ends if before(span.start, other.end)), None))
        is not None
    )
    return first._replace(
        text=text[first.start : match.end()], stop=match.end(), spans=spans or first.spans
    )


def _part(span: Span, part: str) -> Span:
    if span.start is None or span.end is None:
        return span
    third = (span.end - span.start) / 3
    if part in ("early", "start of", "beginning of"):
        return Span(span.start, span.start + third)
    if part in ("late", "end of"):
        return Span(span.end - third, span.end)
    return Span(span.start + third, span.end - third)
