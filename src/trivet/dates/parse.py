"""Finds expressions of time in a text, each with the words that belong to it: "since", "the end of", "between ... and".

Words that are mostly no date ("may", "March", "Sunday", "spring", 2025) count only after one such as "in" or "since".
Patterns are tried where a word begins and none repeats without bound, so the time is linear in the text.
"""

from __future__ import annotations

import re
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from trivet.dates.forms import MEANINGS, SPELLED, any_form, form, named
from trivet.dates.spans import DAY, ReferenceTime, Span, Spans, before, may_mention_time

# Of a long text the beginning is read: a question is short, and of a long memory the first dates tell when it was.
MAX_CHARACTERS_READ = 8_000
MAX_EXPRESSIONS = 16
MAX_MATCHES = 200
# The tense is looked for so many characters around an expression.
TENSE_WINDOW = 60
# What can stand before an expression and belong to it: "until the middle of March".
MAX_LEAD_CHARACTERS = 40

# After which words a word that is mostly no date is one. What has an article before it is none: "the May release".
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
# "the note from June" may be by June; the others are hardly anyone's name.
_NAMES = frozenset("jan april may june august".split())
_lead = re.compile(
    r"(?:(?<!\w)(?P<relation>since|until|till|before|after|prior to|between|from|in|on|at|over|during|throughout|by) )?"
    r"(?P<article>the )?"
    r"(?:(?<!\w)(?P<part>early|late|mid|middle of|end of|start of|beginning of)[ -](?:in )?)?$",
)
_to = re.compile(r" (?:and|to|until|till|through) (?:the )?| ?[-–] ?")
_past = re.compile(
    r"\b(?:did|didn't|was|were|had|been|used to|decided|happened|said|went|got|came|made|met)\b"
)
_future = re.compile(r"\b(?:will|won't|going to|upcoming|plans?|planned|due|scheduled?|deadline)\b")
# Lines may be broken anywhere. One for one, so that places stay.
_BLANKS = dict.fromkeys(map(ord, "\t\n\r\xa0"), " ")
_again_and_again = re.compile(r"\b(?:every|each|weekly|always|never|usually)\b")
_BOUNDS = frozenset(("since", "after", "before", "prior to", "until", "till"))
_four_digits = re.compile(r"(?<!\d)\d{4}(?!\d)")
_nothing_after = re.compile(r"[\s?!.]*$")


class Expression(NamedTuple):
    """One expression of time. Several spans where it leaves open which is meant: "in March", the last or the next.

    `spelled`: it names a date by its digits or its month, which may stand just so in a memory's text. `yearly`: and no
    year, so it may be one that comes again, such as a birthday.
    """

    text: str
    start: int
    stop: int
    spans: Spans
    spelled: bool
    yearly: bool = False


def find_time_expressions(text: str, now: datetime, nearest: bool = False) -> list[Expression]:
    """The expressions of time in a text as they were meant at `now`, which is local time without a zone.

    Where it is unsure which of two days is meant, both count; with `nearest` the nearer one, for what is a statement.
    """
    if not may_mention_time(text):
        return []
    read = _lowercase(text[:MAX_CHARACTERS_READ])
    found: list[Expression] = []
    open_range = False  # the last one began with "from" or "between", and waits for its end
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
    """One for one, so that places stay: a few letters become two when they are made small, and are left as they are."""
    small = text.lower()
    if len(small) != len(text) or "Σ" in text:  # which is another small letter at the end of a word
        small = "".join(map(_lowercase_letter, text))
    return small.translate(_BLANKS)


def _lowercase_letter(letter: str) -> str:
    small = letter.lower()
    return small if len(small) == 1 else letter


def _is_date(kind: str, match: re.Match[str], lead: re.Match[str]) -> bool:
    """Whether a word that is mostly no date is one here, by what stands before it."""
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
    """The year of the dates in a text that give one, if it is the same for all: the others are of that year too."""
    years = {
        found.group() for match in matches if match.lastgroup != "year" for found in _years(match)
    }
    return int(years.pop()) if len(years) == 1 else None


def _years(match: re.Match[str]) -> list[re.Match[str]]:
    return list(_four_digits.finditer(match.group()))


def _start(kind: str, match: re.Match[str], lead: re.Match[str]) -> int:
    """Where its own words begin: in "working on lately" that is not at "on"."""
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
    except (OverflowError, ValueError):  # 31 February, or outside of the years 1 to 9999
        return ()
    return tuple(_part(span, part) for span in spans) if part else spans


def _related(relation: str, spans: Spans, now: datetime) -> Spans:
    """What "since", "before" and the like make of a period. Of several, the latest past one bounds it."""
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
    """ "between March and May": each beginning with the first end behind it."""
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
    """The first, middle or last third."""
    if span.start is None or span.end is None:
        return span
    third = (span.end - span.start) / 3
    if part in ("early", "start of", "beginning of"):
        return Span(span.start, span.start + third)
    if part in ("late", "end of"):
        return Span(span.end - third, span.end)
    return Span(span.start + third, span.end - third)
