"""The time a question asks about, and which memories belong to it: a preference, never a filter.

A memory belongs to a time if it was written, became true or ceased to be true then, or mentions a
date in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from trivet.analyse import Question, analyse, analyse_query
from trivet.common.clock import local_now, local_time, stamp
from trivet.dates.parse import Expression, find_time_expressions
from trivet.dates.spans import Span, format_span, in_year, may_mention_event
from trivet.search.memory_times import MentionedTime, mentioned_times
from trivet.search.query import ask
from trivet.store.records import Dated
from trivet.types import Filter, Memory

if TYPE_CHECKING:
    from trivet.search.recipe import Recipe
    from trivet.store import Store


# With this many other words, a time has half its weight: "what did we decide last week" is about
# the week, a page ending in "by tomorrow" is not. Tuned on synthetic questions; +.04 MRR on six
# held-out LoCoMo conversations (docs/decisions/0025).
HALF_WEIGHT_WORDS = 8
# With at most this many other words, the legs also search within the time only.
MAX_OTHER_WORDS = 2


class TemporalQuery(msgspec.Struct, frozen=True, dict=True):
    """The time that a question names; `question` lacks words such as "last week"."""

    expressions: tuple[Expression, ...]
    question: Question
    other_words: int
    left_out: tuple[str, ...]  # terms removed from `question`

    def reason(self, memory: Memory) -> str | None:
        """Return why a memory belongs to the time: "written in 'last week' (2-8 May)"."""
        return self.reason_by_dates(memory) or self.reason_by_text(mentioned_times(memory))

    def reason_by_dates(self, memory: Dated) -> str | None:
        created = local_time(memory.created_at)
        for expression, span in self._spans:
            if how := _by_its_dates(memory, created, span):
                return f"{how} in '{expression.text}' ({format_span(span)})"
        return None

    def reason_by_text(self, times: Sequence[MentionedTime]) -> str | None:
        for expression, span in self._spans:
            if any(_mentions(one, expression, span) for one in times):
                return f"names a time in '{expression.text}' ({format_span(span)})"
        return None

    @cached_property
    def _spans(self) -> list[tuple[Expression, Span]]:
        return [(expression, span) for expression in self.expressions for span in expression.spans]

    def weight(self, share: float) -> float:
        return share / (1 + self.other_words / HALF_WEIGHT_WORDS)

    @property
    def is_mostly_time(self) -> bool:
        return self.other_words <= MAX_OTHER_WORDS

    @property
    def understood(self) -> str:
        return ", ".join(
            f"'{one.text}' ({' or '.join(map(format_span, one.spans))})" for one in self.expressions
        )

    def narrowed(self, filter: Filter) -> Filter | None:
        now = local_now()
        spans = [
            span
            for one in self.expressions
            for span in one.spans
            if span.start is None or span.start <= now
        ]
        if not self.is_mostly_time or not spans:
            return None
        start = _earliest([span.start for span in spans])
        end = (
            None
            if any(span.end is None for span in spans)
            else max(span.end for span in spans if span.end)
        )
        after = max(
            (bound for bound in (_stamped(start), filter.created_after) if bound), default=None
        )
        before = min(
            (bound for bound in (_stamped(end), filter.created_before) if bound), default=None
        )
        return msgspec.structs.replace(filter, created_after=after, created_before=before)


def temporal_query_of(
    store: Store, question: Question, filter: Filter, recipe: Recipe
) -> TemporalQuery | None:
    if question.quoted_only or not recipe.time:
        return None
    found = find_time_expressions(question.text, local_now())
    if not found and may_mention_event(question.text):
        event = event_in(store, question.text, filter, recipe)
        found = [event] if event else []
    if not found:
        return None
    other = analyse_query(_remove_expressions(question.text, found))
    rest = _without_expressions(store, question, found, filter, recipe)
    kept = set(rest.terms)
    left_out = tuple(term for term in question.terms if term not in kept)
    return TemporalQuery(tuple(found), rest, len(other.words), left_out)


def _without_expressions(
    store: Store,
    question: Question,
    expressions: Sequence[Expression],
    filter: Filter,
    recipe: Recipe,
) -> Question:
    """Remove time words, except spelled dates, which memories may hold."""
    text = _remove_expressions(question.text, [one for one in expressions if not one.spelled])
    rest = ask(store, text, filter, recipe.bm25)
    return (
        msgspec.structs.replace(rest, text=question.text, folded=question.folded)
        if rest.words
        else question
    )


def _remove_expressions(text: str, expressions: Sequence[Expression]) -> str:
    for expression in reversed(expressions):
        text = f"{text[: expression.start]} {text[expression.stop :]}"
    return text


def _earliest(starts: Sequence[datetime | None]) -> datetime | None:
    return None if None in starts else min(start for start in starts if start)


def _stamped(moment: datetime | None) -> str | None:
    return None if moment is None else stamp(moment)


def _by_its_dates(memory: Dated, created: datetime | None, span: Span) -> str | None:
    if created is not None and span.holds(created):
        return "written"
    if _falls_in(memory.valid_from, span):
        return "became true"
    return "ceased to be true" if _falls_in(memory.valid_to, span) else None


def _falls_in(bound: datetime | None, span: Span) -> bool:
    moment = local_time(bound) if bound is not None else None
    return moment is not None and span.holds(moment)


def _mentions(mentioned: MentionedTime, expression: Expression, span: Span) -> bool:
    """Match yearly dates in any year, if neither side names one."""
    if any(_mostly_within(one, span) for one in mentioned.spans):
        return True
    bound = span.start or span.end
    if bound is None or not (mentioned.yearly and expression.yearly):
        return False
    moved = [in_year(one, bound.year) for one in mentioned.spans]
    return any(one is not None and _mostly_within(one, span) for one in moved)


def _mostly_within(dated: Span, span: Span) -> bool:
    """Require half of the mentioned time: "in 2025" does not belong to a day of 2025."""
    if dated.start is None or dated.end is None or not dated.overlaps(span):
        return False
    start = max(dated.start, span.start) if span.start else dated.start
    end = min(dated.end, span.end) if span.end else dated.end
    return 2 * (end - start) >= dated.end - dated.start


# Memories searched for the day of an event.
MAX_EVENT_MEMORIES = 5
MAX_EVENT_CHARACTERS = 2_000

# "What did we try before the launch?", but not "what must be done before the launch?".
_asks_what_was = re.compile(r"\b(?:did|was|were|had|used to|happened|decided)\b", re.IGNORECASE)
_event = re.compile(
    r"\b(?P<relation>before|after|since|until|during) "
    r"(?P<name>(?:the|our|my|we|i|she|he|they) [\w'-]+(?: [\w'-]+){0,3})(?=[?!.,]|$)",
    re.IGNORECASE,
)
_sentence_end = re.compile(r"[.!?\n]\s")


def event_in(store: Store, text: str, filter: Filter, recipe: Recipe) -> Expression | None:
    """Return the time before, after or of an event whose day memories give."""
    found = _event.search(text) if _asks_what_was.search(text) else None
    terms = tuple(dict.fromkeys(analyse(found["name"]))) if found else ()
    day = _day_of(store, terms, filter, recipe) if terms else None
    if found is None or day is None:
        return None
    span = _span(found["relation"].lower(), day, day + timedelta(days=1))
    return Expression(found.group(), found.start(), found.end(), (span,), spelled=True)


def _span(relation: str, day: datetime, next_day: datetime) -> Span:
    return {
        "before": Span(None, day),
        "until": Span(None, next_day),
        "during": Span(day, next_day),
        "since": Span(day, None),
        "after": Span(next_day, None),
    }[relation]


def _day_of(
    store: Store, terms: tuple[str, ...], filter: Filter, recipe: Recipe
) -> datetime | None:
    best = store.lexical.search(terms, terms, 1, filter, recipe.bm25, MAX_EVENT_MEMORIES)
    memories = store.memories.get_many([candidate.id for candidate in best])
    days = (
        _day_in(memories[one.id], terms)
        for one in best
        if one.id in memories and not memories[one.id].sensitive
    )
    return next((day for day in days if day is not None), None)


def _day_in(memory: Memory, terms: tuple[str, ...]) -> datetime | None:
    """Return the day in the first dated sentence with all terms; None if ambiguous."""
    created = local_time(memory.created_at)
    if created is None:
        return None
    for sentence in _sentence_end.split(memory.content[:MAX_EVENT_CHARACTERS]):
        if set(terms) <= set(analyse(sentence)):
            spans = [
                span
                for one in find_time_expressions(sentence, created, nearest=True)
                for span in one.spans
            ]
            days = {
                span.start
                for span in spans
                if span.start and span.end and span.end - span.start <= timedelta(1)
            }
            if days:
                return days.pop() if len(days) == 1 else None
    return None
