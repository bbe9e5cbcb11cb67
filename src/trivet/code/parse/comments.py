"""Turns comments into plain text: without the marks that make them comments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node
else:
    Node = object

DOC_CHARACTERS = 500
READ_BYTES = 4 * DOC_CHARACTERS  # of a comment: marks and indentation are taken off

_OPENING = re.compile(r"(?:/\*[*!]?|//[/!]?|#['!]?|--\[?=*\[?|;+|%+|\{-|\(\*+|@(?:module|type)?doc\b|~[sS])(?:\s\|)?")
_MARKS = re.compile(r"[\s*#/;%\-'\"!|<>={}()\[\]~]{1,40}")
_CLOSING = re.compile(r"(?:(?<!\*)\*++[/)]|-\}|\]\]|\"{3}|'{3})$")
# Attributes that are not documentation: `#[derive(Debug)]`, `@spec`, `@decorator`.
_NOT_DOCUMENTATION = ("#[", "@", "[", "-spec", "-dialyzer", "{-#", "#!/")


def plain_text(comments: Sequence[Node], source: bytes) -> str:
    """The words of comments that stand one below the other, on one line."""
    lines: list[str] = []
    for comment in comments:
        raw = source[comment.start_byte : min(comment.end_byte, comment.start_byte + READ_BYTES)]
        lines.extend(_lines(raw.decode("utf-8", "replace")))
        if sum(map(len, lines)) > DOC_CHARACTERS:
            break
    return squeeze(" ".join(lines))


def _lines(comment: str) -> list[str]:
    if comment.startswith(_NOT_DOCUMENTATION) and not comment.startswith(("@doc", "@moduledoc", "@typedoc")):
        return []
    return [_without_marks(line) for line in comment.split("\n")]


def _without_marks(line: str) -> str:
    line = line.strip()
    if (opening := _OPENING.match(line)) is not None:
        line = line[opening.end() :].strip()
    line = _CLOSING.sub("", line).strip()
    if (marks := _MARKS.match(line)) is not None and (marks.end() == len(line) or line[0] in "*#/;%-'\"|!"):
        line = line[marks.end() :]
    return line.rstrip("\"'").strip()


def squeeze(words: str) -> str:
    """On one line, and not too long."""
    return " ".join(words.split())[:DOC_CHARACTERS].rstrip()
