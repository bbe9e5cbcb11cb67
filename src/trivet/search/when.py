"""What time a question asks about, and which memories belong to it.

A preference, never a filter: what belongs to the time is weighed higher and says why. A memory belongs to it by when it
was written, by when it is true, or by a date in its text, read as it was meant on the day it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from trivet.analyse import Question, analyse, analyse_query
from trivet.clock import local_now, local_time
from trivet.dates import Expression, Span, described, expressions_in
from trivet.types import Filter, Memory

if TYPE_CHECKING:
    from trivet.search.recipe import Recipe
    from trivet.store import Store

# So many memories that name an event are read for the day it was on.
EVENT_READ = 5
LONGEST_EVENT_IN_WORDS = 4

# "What did we try before the launch?" asks about a time; "what must be done before the launch?" does not.
_asks_what_was = re.compile(r"\b(?:did|was|were|had|used to|happened|decided)\b", re.IGNORECASE)
_event = re.compile(
    r"\b(?P<relation>before|after|since|until|during) (?P<name>(?:the|our|my|we|i|she|he|they) [\w'-]+(?: [\w'-]+){0,3})"
    r"(?=[\s?!.,]*$|,)",
    re.IGNORECASE,
)


class TimeAsked(msgspec.Struct, frozen=True):
    """The expressions of time in a question, and the question without the words that only point ("last week")."""

    expressions: tuple[Expression, ...]
    rest: Question

    def reason(self, memory: Memory) -> str | None:
        """Why a memory belongs to the time, or None."""
        for expression in self.expressions:
            for span in expression.spans:
                if how := _how(memory, span):
                    return f"{how} in '{expression.text}' ({described(span)})"
        return None

    @property
    def spoken(self) -> str:
        """As it was understood, such as "'last week' (2-8 November 2026)"."""
        parts = [f"'{one.text}' ({' or '.join(map(described, one.spans))})" for one in self.expressions]
        return ", ".join(parts)


def time_asked(store: Store, question: Question, filter: Filter, recipe: Recipe) -> TimeAsked | None:
    """None for a question without any expression of time, as most are, and for one of quoted words alone."""
    if question.quoted_only:
        return None
    seen = local_now()
    found = [one for one in expressions_in(question.text, seen) if _bounded(one)]
    if not found and (event := _event_in(store, question.text, filter, recipe)):
        found = [event]
    return TimeAsked(tuple(found), _without(question, found)) if found else None


def _bounded(expression: Expression) -> bool:
    return any(span != Span(None, None) for span in expression.spans)


def _without(question: Question, expressions: list[Expression]) -> Question:
    """Without the words that only point. Those of a spelled date stay, and all of them where nothing else is left."""
    text = question.text
    for expression in reversed(expressions):
        if not expression.spelled:
            text = f"{text[: expression.start]} {text[expression.stop :]}"
    rest = analyse_query(text)
    return msgspec.structs.replace(rest, text=question.text, folded=question.folded) if rest.words else question


def _how(memory: Memory, span: Span) -> str | None:
    created = local_time(memory.created_at)
    if created is not None and span.holds(created):
        return "written"
    if _true_then(memory, span):
        return "true"
    if created is not None and any(_mostly_in(dated, span) for dated in _dates_in(memory, created)):
        return "its text names a time"
    return None


def _true_then(memory: Memory, span: Span) -> bool:
    """By a bound of its validity that lies in the span. What began long ago and still holds says nothing."""
    bounds = [local_time(bound) for bound in (memory.valid_from, memory.valid_to) if bound is not None]
    return any(bound is not None and span.holds(bound) for bound in bounds)


def _dates_in(memory: Memory, created: datetime) -> Iterator[Span]:
    text = f"{memory.title}. {memory.content}" if memory.title else memory.content
    for expression in expressions_in(text, created):
        yield from expression.spans


def _mostly_in(dated: Span, span: Span) -> bool:
    """At least half of the time that a text names: "in 2025" does not belong to a day of 2025."""
    if dated.start is None or dated.end is None or not dated.overlaps(span):
        return False
    start = max(dated.start, span.start) if span.start else dated.start
    end = min(dated.end, span.end) if span.end else dated.end
    return 2 * (end - start) >= dated.end - dated.start


def _event_in(store: Store, text: str, filter: Filter, recipe: Recipe) -> Expression | None:
    """ "before the launch", where the store knows when that was."""
    found = _event.search(text) if _asks_what_was.search(text) else None
    terms = tuple(dict.fromkeys(analyse(found["name"]))) if found else ()
    if found is None or not terms:
        return None
    day = _day_of(store, terms, filter, recipe)
    if day is None:
        return None
    relation = found["relation"].lower()
    end = day + timedelta(days=1)
    span = {"before": Span(None, day), "until": Span(None, end), "during": Span(day, end)}.get(
        relation, Span(end, None)
    )
    if relation == "since":
        span = Span(day, None)
    return Expression(found.group(), found.start(), found.end(), (span,), True)


def _day_of(store: Store, terms: tuple[str, ...], filter: Filter, recipe: Recipe) -> datetime | None:
    """The one day that a sentence of a memory gives for all these terms. None where it is not sure."""
    best = store.lexical.search(terms, terms, 1, filter, recipe.bm25, EVENT_READ)
    memories = store.memories.get_many([candidate.id for candidate in best])
    for candidate in best:
        memory = memories.get(candidate.id)
        created = local_time(memory.created_at) if memory else None
        if memory is None or created is None:
            continue
        for sentence in re.split(r"[.!?\n]+\s", memory.content[:2000]):
            if set(terms) <= set(analyse(sentence)):
                days = {span.start for one in expressions_in(sentence, created) for span in one.spans if _is_day(span)}
                if len(days) == 1:
                    return days.pop()
    return None


def _is_day(span: Span) -> bool:
    return span.start is not None and span.end is not None and span.end - span.start <= timedelta(days=1)
