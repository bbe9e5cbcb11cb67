"""New turns of an agent's transcript, and the sentences that the user wrote."""

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

# Bounds one read, from the end: the newest turns matter, and a hook must not delay the agent.
MAX_READ_BYTES = 8 * 2**20
USER = "User"
# Without it, opening a named pipe would wait for a writer.
_NONBLOCKING = getattr(os, "O_NONBLOCK", 0)


class NewTurns(msgspec.Struct, frozen=True):
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
            "The hook's event has no transcript_path, so there is nothing to learn from."
        )
    return Path(named).expanduser()


def new_turns(path: Path, position: int, end: int | None = None) -> NewTurns:
    """Return the turns after a position, whole lines only.

    A file shorter than the position is new and read from the start.
    """
    try:
        handle = os.open(path, os.O_RDONLY | _NONBLOCKING)
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"The transcript {path} cannot be read: {getattr(error, 'strerror', error)}."
        ) from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInput(f"The transcript {path} is not a regular file.")
        size = min(status.st_size, end) if end is not None else status.st_size
        start = position if position <= size else 0
        first = max(start, size - MAX_READ_BYTES)
        data = _read(handle, first, size)
    finally:
        os.close(handle)
    if first > start:  # probably inside a line
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
    # Gemini first: its opening line looks like Claude Code's.
    if any(is_gemini(event) for event in events):
        yield from gemini_turns(events)
    elif any(is_claude_code(event) for event in events):
        yield from claude_code_turns(events)
    elif any(is_codex(event) for event in events):
        yield from codex_turns(events)


# Bounds of a sentence in characters; longer ones are pasted or too much for one memory.
SHORTEST, LONGEST = 12, 400
# A longer message is mostly pasted; its author's own words are in the first and last lines.
LONGEST_MESSAGE = 20_000

_not_by_user = re.compile(
    # Trivet's wrapper around recalled memories, and what programs insert into a user's message.
    r"<memory-data\b.*?(?:</memory-data[^<>]*>|\Z)"
    r"|<(trivet[\w-]*|system-reminder|[\w-]*(?:context|instructions|memory|memories)"
    r"|local-command-\w+|"
    r"command-\w+)\b[^<>]*>"
    r".*?(?:</\1\s*>|\Z)"
    r"|```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)"
    r"|[\"“][^\"“”\n]{20,400}[\"”]",
    re.DOTALL | re.IGNORECASE,
)
# Blanks without line ends: \s would match those too and be quadratic over many empty lines.
_quoted_line = re.compile(r"^[^\S\n]*(?:>|\||\$ |\+|-{2,}|={2,}|#include|at \w).*$", re.MULTILINE)
_log = re.compile(
    r"Traceback|\b\w*(?:Error|Exception)\b:|\b(?:WARN|ERROR|INFO|DEBUG|FATAL)\b"
    r"|^\s*\[?\d{4}-\d\d-\d\d[ T]|"
    r"\b0x[0-9a-f]{6,}"
    r"|^\s*File \""
)
_bullet = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
# An end mark before a space, except after "e.g." and the like.
_sentence_end = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\betc\.)\s+(?=[\"'“(]?[A-Z0-9a-z])"
)


def sentences(message: str) -> Iterator[tuple[str, str]]:
    """Yield each sentence with its predecessor in the paragraph, or ""."""
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
    """Return the author's words, without pasted, quoted, injected and private text."""
    message = remove_private_parts(message)
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[: LONGEST_MESSAGE // 2]}\n{message[-LONGEST_MESSAGE // 2 :]}"
    return _quoted_line.sub("", _not_by_user.sub("\n", message))
