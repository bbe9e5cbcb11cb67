"""The times that a memory's text names. They are stored with it, so that a recall that asks about a time reads no text.

What is stored says by which grammar and from which moment it was read: by an older grammar, or in another zone of time,
it says nothing.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from trivet.common.bounded_cache import MIB, cached
from trivet.common.clock import local_time
from trivet.dates.spans import LocalTime, Spans, may_mention_time
from trivet.types import Memory

# A change to what `find_time_expressions` finds or to what it means needs a new number.
GRAMMAR = 1
# The first dates of a long memory tell when it was. So much is read of each in about a millisecond.
MAX_READ_CHARACTERS = 2_000
# More than a time takes with its spans: to measure each takes a third as long as to find them.
MENTIONED_TIME_BYTES = 1_000


class MentionedTime(msgspec.Struct, frozen=True, array_like=True):
    """One of them, as it was meant on the day it was written. `yearly`: without a year, as a birthday may be."""

    spans: Spans
    yearly: bool


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    """Without a moment where the text can name no time, whenever it was written."""

    grammar: int
    written: LocalTime | None = None
    times: tuple[MentionedTime, ...] = ()


_decode = msgspec.json.Decoder(_Stored).decode


_NONE = f"[{GRAMMAR}]"


def encode_mentioned_times(memory: Memory) -> str:
    written, text = local_time(memory.created_at), _beginning(memory)
    if written is None or not may_mention_time(text):
        return _NONE
    return msgspec.json.encode(_Stored(GRAMMAR, written, _read(text, written))).decode()


def decode_mentioned_times(
    stored: str | None, created_at: datetime
) -> tuple[MentionedTime, ...] | None:
    """Those of a memory that was written then; None where its text has to be read."""
    if stored is None or stored == _NONE:
        return None if stored is None else ()
    try:
        found = _decode(stored)
    except (
        msgspec.MsgspecError,
        TypeError,
    ):  # as a later version writes it, or damaged: the text says the same
        return None
    return (
        found.times if (found.grammar, found.written) == (GRAMMAR, local_time(created_at)) else None
    )


def mentioned_times(memory: Memory) -> tuple[MentionedTime, ...]:
    """As its text says them."""
    written = local_time(memory.created_at)
    return () if written is None else _read_cached(_beginning(memory), written)


def _beginning(memory: Memory) -> str:
    text = f"{memory.title}. {memory.content}" if memory.title else memory.content
    return text[:MAX_READ_CHARACTERS]


# Of memories stored by earlier versions all that a question about a time finds are read, and the same ones again.
@cached(4 * MIB, lambda times: MENTIONED_TIME_BYTES * (1 + len(times)))
def _read_cached(text: str, written: datetime) -> tuple[MentionedTime, ...]:
    return _read(text, written)


def _read(text: str, written: datetime) -> tuple[MentionedTime, ...]:
    if not may_mention_time(text):
        return ()
    from trivet.dates.parse import (
        find_time_expressions,
    )  # takes milliseconds to load, and few texts need it

    return tuple(
        MentionedTime(one.spans, one.yearly)
        for one in find_time_expressions(text, written, nearest=True)
    )
