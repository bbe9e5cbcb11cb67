"""Times that are named by an event: "before the launch", where a memory says when that was."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from trivet.analyse import analyse
from trivet.clock import local_time
from trivet.dates.find import Expression, expressions_in
from trivet.dates.spans import Span
from trivet.types import Filter, Memory

if TYPE_CHECKING:
    from trivet.search.recipe import Recipe
    from trivet.store import Store

# So many of the memories that hold all its words are read for the day of an event.
MEMORIES_READ = 5
LONGEST_READ = 2_000

# "What did we try before the launch?" asks about a time; "what must be done before the launch?" does not.
_asks_what_was = re.compile(r"\b(?:did|was|were|had|used to|happened|decided)\b", re.IGNORECASE)
_event = re.compile(
    r"\b(?P<relation>before|after|since|until|during) "
    r"(?P<name>(?:the|our|my|we|i|she|he|they) [\w'-]+(?: [\w'-]+){0,3})(?=[?!.,]|$)",
    re.IGNORECASE,
)
_sentence_end = re.compile(r"[.!?\n]\s")


def event_in(store: Store, text: str, filter: Filter, recipe: Recipe) -> Expression | None:
    """The time before, after or of an event, if the store knows surely when it was."""
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


def _day_of(store: Store, terms: tuple[str, ...], filter: Filter, recipe: Recipe) -> datetime | None:
    """The day that the best memory with such a sentence gives for all these terms."""
    best = store.lexical.search(terms, terms, 1, filter, recipe.bm25, MEMORIES_READ)
    memories = store.memories.get_many([candidate.id for candidate in best])
    days = (_day_in(memories[one.id], terms) for one in best if one.id in memories and not memories[one.id].sensitive)
    return next((day for day in days if day is not None), None)


def _day_in(memory: Memory, terms: tuple[str, ...]) -> datetime | None:
    """The one day in the first sentence that holds all the terms and names a day; None if it names several."""
    created = local_time(memory.created_at)
    if created is None:
        return None
    for sentence in _sentence_end.split(memory.content[:LONGEST_READ]):
        if set(terms) <= set(analyse(sentence)):
            spans = [span for one in expressions_in(sentence, created, nearest=True) for span in one.spans]
            days = {span.start for span in spans if span.start and span.end and span.end - span.start <= timedelta(1)}
            if days:
                return days.pop() if len(days) == 1 else None
    return None
