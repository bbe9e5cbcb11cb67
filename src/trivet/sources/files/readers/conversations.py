"""Conversations: their turns as parts, and the lines of JSON that transcripts consist of.

The speaker stands in the text and the time beside it, as measured in docs/decisions/0009-context-of-a-turn.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from trivet.errors import InvalidInput
from trivet.sources.files.parts import About, Part, pieces

# "Yes." and "go on" mean nothing by themselves, and would be near-duplicates of each other.
SHORTEST = 12


class Turn(msgspec.Struct, frozen=True):
    """What one speaker said, under an id that stays the same when the conversation goes on."""

    id: str
    speaker: str
    text: str
    at: str | None = None


def parts_of_turns(turns: Iterable[Turn], title: str, tags: tuple[str, ...], within: str = "") -> Iterator[Part]:
    for turn in turns:
        if len(turn.text.strip()) < SHORTEST:
            continue
        fields = {"title": title[:300] or None, "tags": tags} | ({"created_at": turn.at} if turn.at else {})
        for number, piece in enumerate(pieces(f"{turn.speaker}: {turn.text.strip()}"), 1):
            place = within + turn.id + (f" ~{number}" if number > 1 else "")
            yield Part(place, piece, fields, None, About(note=title))


def joined(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Joins neighbouring turns of one speaker: an agent writes one answer in pieces between its tool calls."""
    current: Turn | None = None
    for turn in turns:
        if current is not None and current.speaker == turn.speaker:
            current = msgspec.structs.replace(current, text=f"{current.text}\n\n{turn.text}")
            continue
        if current is not None:
            yield current
        current = turn
    if current is not None:
        yield current


def json_lines(text: str) -> Iterator[dict[str, Any]]:
    """The objects of a text, one a line. A broken last line is one that is still being written."""
    rows = text.split("\n")
    for number, row in enumerate(rows, 1):
        if not row.strip():
            continue
        try:
            value = msgspec.json.decode(row)
        except (msgspec.DecodeError, RecursionError):
            if number == len(rows):
                return
            raise InvalidInput(
                f"line {number} is not JSON. If the file was cut off there, take that line away"
            ) from None
        if isinstance(value, dict):
            yield value


def first_object(text: str) -> dict[str, Any]:
    try:
        return next(json_lines(text), {})
    except InvalidInput:
        return {}
