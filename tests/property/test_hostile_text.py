"""Every reader's work grows linearly with the text, whatever the text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from itertools import count

import pytest

from support.growth import NeverEnds, ended, grows_too_fast
from trivet.agents.capture.rules import statements
from trivet.dates.parse import find_time_expressions
from trivet.graph.extract import extract
from trivet.memory.propose import is_same_statement
from trivet.secrets import guard as protect
from trivet.secrets.detect import without_secrets
from trivet.serve.mcp.text import neutralized
from trivet.sources.files.conversations import _claude_code_spoken

PIECES = (
    *".!?…,;:-–/\\_@#+'’&\"“”«»()[]{}<>=*|`~^%$1aAéЖ三 \t\n\r\x0b\u00a0",
    *("A ", "a ", "Aa ", "A. ", "A.", "A and ", "A & ", "A of the ", "of ", "A'", "Dr. ", "St."),
    *("a.", "a_", "_a", "a/", "/a", "@a", "#a ", "--a ", "() ", "a()", "0x1 ", "A1 ", "A_B"),
    *("http://", "http://a ", "www.", "may ", "1 may ", "1 may 2024 ", "may 1, ", "2024-01"),
    *('"a', '"a" ', "“a", "「a", "`a`", "```\n", "~~~\n```\n", "```\n\n", " \n", "\t\n", "\n;"),
    *(
        "def ",
        "def\n",
        "def a\n",
        "export ",
        "export\n",
        "public static ",
        "CREATE ",
        "CREATE TABLE ",
    ),
    *(
        "since the ",
        "in the middle of ",
        "mon, ",
        "last ",
        "a few ",
        "1 to ",
        "between march and ",
        "since monday ",
    ),
    *(
        "; ",
        "{ ",
        "a = ",
        "a=",
        "a(",
        "if ",
        "no, ",
        "remember that ",
        "we always ",
        "AKIA",
        "-----BEGIN ",
    ),
    *(
        "pass",
        "password ",
        "password is ",
        "door code ",
        "PIN 12 ",
        "x as the password ",
        "abandon ",
        "abandon\n",
    ),
    *(
        "password: x9Kq7!a ",
        "[secret:jwt:1]",
        "<private>",
        "<private></private>",
        "</memory-data ",
        "<system-reminder>",
    ),
    *(
        "<system-reminder>",
        "mysql -p",
        "--password ",
        "machine a login b password ",
        "softlayer_api_key ",
        "ghp_a1\n",
        "A1b2c3\n",
        "sk-",
    ),
)
NOW = datetime(2026, 11, 15)
READERS: dict[str, Callable[[str], object]] = {
    "the graph": lambda text: extract(text[:300], text, (text[:64],)),
    "the graph's code": lambda text: extract(None, f"```\n{text}", ()),
    "dates": lambda text: find_time_expressions(f"{text} in march", NOW),
    "secrets": without_secrets,
    "private parts": lambda text: protect._spans(text, secrets=False),
    "capture": statements,
    "proposals": lambda text: is_same_statement(f"{text} a", f"{text} b"),
    "tools": neutralized,
    "transcripts": _claude_code_spoken,
}
# Processor time; only text that never finishes reaches it.
SECONDS = 20.0


@pytest.mark.parametrize("reader", READERS)
def test_reading_time_is_linear(reader: str) -> None:
    assert [piece for piece in PIECES if _is_slow(READERS[reader], piece)] == []


def _is_slow(read: Callable[[str], object], piece: str) -> bool:
    numbers = count()  # no text is repeated, because some readers cache
    try:
        with ended(SECONDS):
            return grows_too_fast(
                read, lambda length: f"{piece * (length // len(piece))}x{next(numbers)}"
            )
    except NeverEnds:
        return True
