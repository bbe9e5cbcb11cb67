"""The sentences a user wrote in a message, without what was pasted, quoted, injected or marked private."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trivet.secrets.private import without_private

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
_sentence_end = re.compile(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\betc\.)\s+(?=[\"'“(]?[A-Z0-9a-z])")


def sentences(message: str) -> Iterator[tuple[str, str]]:
    """Each sentence with the one before it in the same paragraph, or nothing."""
    for paragraph in own_words(message).splitlines():
        before = ""
        if _log.search(paragraph):
            continue
        for piece in _sentence_end.split(_bullet.sub("", paragraph)):
            sentence = " ".join(piece.split())
            if sentence:
                yield sentence, before
                before = sentence


def own_words(message: str) -> str:
    """The message without what its author did not write, or marked private."""
    message = without_private(message)
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[: LONGEST_MESSAGE // 2]}\n{message[-LONGEST_MESSAGE // 2 :]}"
    return _quoted_line.sub("", _not_by_user.sub("\n", message))
