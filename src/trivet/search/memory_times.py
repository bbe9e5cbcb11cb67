"""The times that a memory's text mentions, stored with it so that recall reads no text."""

from __future__ import annotations

from datetime import datetime

import msgspec

from trivet.common.bounded_cache import MIB, cached
from trivet.common.clock import local_time
from trivet.dates.spans import LocalTime, Spans, may_mention_time
from trivet.types import Memory

# Increment when `find_time_expressions` finds or interprets anything differently.
GRAMMAR = 1
# Prefix of a text to parse, about a millisecond of work.
MAX_READ_CHARACTERS = 2_000
# Generous estimate per time: measuring takes a third as long as parsing.
MENTIONED_TIME_BYTES = 1_000


class MentionedTime(msgspec.Struct, frozen=True, array_like=True):
    """A time resolved on the writing date; `yearly` if it names no year."""

    spans: Spans
    yearly: bool


class _Stored(msgspec.Struct, frozen=True, array_like=True):
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
    """Return the stored times, or None if the text must be parsed."""
    if stored is None or stored == _NONE:
        return None if stored is None else ()
    try:
        found = _decode(stored)
    except (
        msgspec.MsgspecError,
        TypeError,
    ):  # damaged or written by a later version: parse the text instead
        return None
    return (
        found.times if (found.grammar, found.written) == (GRAMMAR, local_time(created_at)) else None
    )


def mentioned_times(memory: Memory) -> tuple[MentionedTime, ...]:
    written = local_time(memory.created_at)
    return () if written is None else _read_cached(_beginning(memory), written)


def _beginning(memory: Memory) -> str:
    text = f"{memory.title}. {memory.content}" if memory.title else memory.content
    return text[:MAX_READ_CHARACTERS]


# Memories of earlier versions have no stored times.
@cached(4 * MIB, lambda times: MENTIONED_TIME_BYTES * (1 + len(times)))
def _read_cached(text: str, written: datetime) -> tuple[MentionedTime, ...]:
    return _read(text, written)


def _read(text: str, written: datetime) -> tuple[MentionedTime, ...]:
    if not may_mention_time(text):
        return ()
    from trivet.dates.parse import (
        find_time_expressions,
    )  # loading takes milliseconds, and few texts need it

    return tuple(
        MentionedTime(one.spans, one.yearly)
        for one in find_time_expressions(text, written, nearest=True)
    )
