"""The new turns of an agent's transcript: those after a position in the file, whole lines only."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from trivet.errors import InvalidInput
from trivet.sources.files.readers import claude_code, codex, gemini
from trivet.sources.files.readers.conversations import Turn

# Most that is read at once, from the end: the newest turns count, and a hook must not hold up the agent.
MOST_BYTES = 8 * 2**20
USER = "User"
# Without it, opening a named pipe would wait for a writer.
_NONBLOCKING = getattr(os, "O_NONBLOCK", 0)


class NewTurns(msgspec.Struct, frozen=True):
    """The turns since a position, the position after them, and counts of what could not be read."""

    turns: tuple[Turn, ...]
    position: int
    skipped_bytes: int = 0
    broken_lines: int = 0

    @property
    def of_user(self) -> list[str]:
        return [turn.text for turn in self.turns if turn.speaker == USER]


def transcript_of(event: Mapping[str, Any]) -> Path:
    named = event.get("transcript_path")
    if not isinstance(named, str) or not named.strip() or "\x00" in named:
        raise InvalidInput("The hook's event names no transcript_path, so there is nothing to learn from.")
    return Path(named).expanduser()


def new_turns(path: Path, position: int, end: int | None = None) -> NewTurns:
    """Turns from a position on; from the start if the file is shorter than that, since then it is another file."""
    try:
        handle = os.open(path, os.O_RDONLY | _NONBLOCKING)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"The transcript {path} cannot be read: {getattr(error, 'strerror', error)}.") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInput(f"The transcript {path} is no file.")
        size = min(status.st_size, end) if end is not None else status.st_size
        start = position if position <= size else 0
        first = max(start, size - MOST_BYTES)
        data = _read(handle, first, size)
    finally:
        os.close(handle)
    if first > start:  # probably in the middle of a line
        data = data[data.find(b"\n") + 1 :] if b"\n" in data else b""
    whole = data[: data.rfind(b"\n") + 1]
    broken: list[int] = []
    events = list(_objects(whole, broken))
    return NewTurns(tuple(_turns(events)), size - (len(data) - len(whole)), first - start, len(broken))


def _read(handle: int, first: int, last: int) -> bytes:
    os.lseek(handle, first, os.SEEK_SET)
    pieces = []
    while first < last and (piece := os.read(handle, last - first)):
        pieces.append(piece)
        first += len(piece)
    return b"".join(pieces)


def _objects(data: bytes, broken: list[int]) -> Iterator[dict[str, Any]]:
    for number, row in enumerate(data.split(b"\n")):
        if not row.strip():
            continue
        try:
            value = msgspec.json.decode(row)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            broken.append(number)
            continue
        if isinstance(value, dict):
            yield value


def _turns(events: list[dict[str, Any]]) -> Iterator[Turn]:
    if any(gemini.is_gemini(event) for event in events):  # first: its opening line looks like one of Claude Code
        yield from gemini.turns_in(events)
    elif any(claude_code.is_claude_code(event) for event in events):
        yield from claude_code.turns_in(events)
    elif any(codex.is_codex(event) for event in events):
        yield from codex.turns_in(events)
