"""Turns of a conversation as parts. Who spoke stands in the text and when beside it: that is what the lab found useful.

See docs/decisions/0009-context-of-a-turn.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from trivet.sources.files.cut import pieces
from trivet.sources.files.values import About, Part

# "Yes." and "go on" say nothing by themselves, and would be near-duplicates of each other for ever.
SHORTEST = 12


class Turn(msgspec.Struct, frozen=True):
    """What somebody said, under an id that stays when the conversation goes on."""

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
    """Neighbours of one speaker are one turn: an agent speaks between its tool calls, and means one answer."""
    held: Turn | None = None
    for turn in turns:
        if held is not None and held.speaker == turn.speaker:
            held = msgspec.structs.replace(held, text=f"{held.text}\n\n{turn.text}")
            continue
        if held is not None:
            yield held
        held = turn
    if held is not None:
        yield held
