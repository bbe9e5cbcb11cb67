"""The new turns of an agent's transcript: those after a position in the file, whole lines only.

The sentences a user wrote in a message, without what was pasted, quoted, injected or marked private.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from trivet.errors import InvalidInput
from trivet.secrets.masking import remove_private_parts
from trivet.sources.files.conversations import (
    Turn,
    claude_code_turns,
    codex_turns,
    gemini_turns,
    is_claude_code,
    is_codex,
    is_gemini,
)

# Most that is read at once, from the end: the newest turns count, and a hook must not hold up the agent.
MAX_READ_BYTES = 8 * 2**20
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
    def user_texts(self) -> list[str]:
        return [turn.text for turn in self.turns if turn.speaker == USER]


def transcript_of(event: Mapping[str, Any]) -> Path:
    named = event.get("transcript_path")
    if not isinstance(named, str) or not named.strip() or "\x00" in named:
        raise InvalidInput(
            "The hook's event names no transcript_path, so there is nothing to learn from."
        )
    return Path(named).expanduser()


def new_turns(path: Path, position: int, end: int | None = None) -> NewTurns:
    """Turns from a position on; from the start if the file is shorter than that, since then it is another file."""
    try:
        handle = os.open(path, os.O_RDONLY | _NONBLOCKING)
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"The transcript {path} cannot be read: {getattr(error, 'strerror', error)}."
        ) from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInput(f"The transcript {path} is no file.")
        size = min(status.st_size, end) if end is not None else status.st_size
        start = position if position <= size else 0
        first = max(start, size - MAX_READ_BYTES)
        data = _read(handle, first, size)
    finally:
        os.close(handle)
    if first > start:  # probably in the middle of a line
        data = data[data.find(b"\n") + 1 :] if b"\n" in data else b""
    whole = data[: data.rfind(b"\n") + 1]
    broken: list[int] = []
    events = list(_objects(whole, broken))
    return NewTurns(
        tuple(_turns(events)), size - (len(data) - len(whole)), first - start, len(broken)
    )


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
    if any(
        is_gemini(event) for event in events
    ):  # first: its opening line looks like one of Claude Code
        yield from gemini_turns(events)
    elif any(is_claude_code(event) for event in events):
        yield from claude_code_turns(events)
    elif any(is_codex(event) for event in events):
        yield from codex_turns(events)


# Bounds of a sentence in characters. Longer ones are pasted, or say too much for one memory.
SHORTEST, LONGEST = 12, 400
# A longer message is mostly material: what its author wants kept stands in its first and last lines.
LONGEST_MESSAGE = 20_000

_not_by_user = re.compile(
    # Our own wrapper around recalled memories, and what programs put into a user's message.
    r"<memory-data\b.*?(?:</memory-data[^<>]*>|\Z)"
    r"|<(trivet[\w-]*|system-reminder|[\w-]*(?:context|instructions|memory|memories)|local-command-\w+|"
    r"command-\w+)\b[^<>]*>"
    r".*?(?:</\1\s*>|\Z)"
    # Code, and text between long quotation marks.
    r"|```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)"
    r"|[\"“][^\"“”\n]{20,400}[\"”]",
    re.DOTALL | re.IGNORECASE,
)
# Only blanks of the same line: \s would also match line ends, and be quadratic over many empty lines.
_quoted_line = re.compile(r"^[^\S\n]*(?:>|\||\$ |\+|-{2,}|={2,}|#include|at \w).*$", re.MULTILINE)
_log = re.compile(
    r"Traceback|\b\w*(?:Error|Exception)\b:|\b(?:WARN|ERROR|INFO|DEBUG|FATAL)\b|^\s*\[?\d{4}-\d\d-\d\d[ T]|"
    r"\b0x[0-9a-f]{6,}"
    r"|^\s*File \""
)
_bullet = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
# An end mark before a space; not after "e.g.", a number's dot or a single letter.
_sentence_end = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\betc\.)\s+(?=[\"'“(]?[A-Z0-9a-z])"
)


def sentences(message: str) -> Iterator[tuple[str, str]]:
    """Each sentence with the one before it in the same paragraph, or nothing."""
    for paragraph in user_text(message).splitlines():
        before = ""
        if _log.search(paragraph):
            continue
        for piece in _sentence_end.split(_bullet.sub("", paragraph)):
            sentence = " ".join(piece.split())
            if sentence:
                yield sentence, before
                before = sentence


def user_text(message: str) -> str:
    """The message without what its author did not write, or marked private."""
    message = remove_private_parts(message)
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[: LONGEST_MESSAGE // 2]}\n{message[-LONGEST_MESSAGE // 2 :]}"
    return _quoted_line.sub("", _not_by_user.sub("\n", message))
