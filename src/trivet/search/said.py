"""The times that a memory's text names. They are stored with it, so that a recall that asks about a time reads no text.

What is stored says by which grammar and from which moment it was read: by an older grammar, or in another zone of time,
it says nothing.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from trivet.bounded_cache import MIB, cached
from trivet.clock import local_time
from trivet.dates.cues import may_name_a_time
from trivet.dates.spans import LocalTime, Spans
from trivet.types import Memory

# A change to what `expressions_in` finds or to what it means needs a new number.
GRAMMAR = 1
# The first dates of a long memory tell when it was. So much is read of each in about a millisecond.
LONGEST_READ = 2_000
# More than a time takes with its spans: to measure each takes a third as long as to find them.
SAID_BYTES = 1_000


class Said(msgspec.Struct, frozen=True, array_like=True):
    """One of them, as it was meant on the day it was written. `yearly`: without a year, as a birthday may be."""

    spans: Spans
    yearly: bool


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    grammar: int
    written: LocalTime
    times: tuple[Said, ...]


_decode = msgspec.json.Decoder(_Stored).decode


def times_to_store(memory: Memory) -> str | None:
    """None of a text that can name no time: to see that again is as quick as to read it in a row."""
    written, text = local_time(memory.created_at), _beginning(memory)
    if written is None or not may_name_a_time(text):
        return None
    return msgspec.json.encode(_Stored(GRAMMAR, written, _read(text, written))).decode()


def times_said(memory: Memory, stored: str | None) -> tuple[Said, ...]:
    """`stored` is what the store has of them, if anything."""
    written = local_time(memory.created_at)
    if written is None:
        return ()
    known = _stored(stored, written) if stored is not None else None
    return _read_lately(_beginning(memory), written) if known is None else known


def _stored(value: str, written: datetime) -> tuple[Said, ...] | None:
    try:
        found = _decode(value)
    except (msgspec.MsgspecError, TypeError):  # as a later version writes it, or damaged: the text says the same
        return None
    return found.times if (found.grammar, found.written) == (GRAMMAR, written) else None


def _beginning(memory: Memory) -> str:
    text = f"{memory.title}. {memory.content}" if memory.title else memory.content
    return text[:LONGEST_READ]


# Of memories stored by earlier versions all that a question about a time finds are read, and the same ones again.
@cached(4 * MIB, lambda times: SAID_BYTES * (1 + len(times)))
def _read_lately(text: str, written: datetime) -> tuple[Said, ...]:
    return _read(text, written)


def _read(text: str, written: datetime) -> tuple[Said, ...]:
    if not may_name_a_time(text):
        return ()
    from trivet.dates.find import expressions_in  # takes milliseconds to load, and few texts need it

    return tuple(Said(one.spans, one.yearly) for one in expressions_in(text, written, nearest=True))
