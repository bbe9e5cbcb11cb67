"""Reads texts that tempt a pattern to try every place against every other. A program, so that it can be stopped."""

from __future__ import annotations

import resource
from datetime import datetime

from trivet.dates.find import expressions_in
from trivet.graph.extract import extract

# Each is repeated until it fills a quarter of the longest memory: there, too, a pattern that backtracks takes minutes.
PIECES = (
    *".!?…,;:-–/\\_@#+'’&\"“”«»()[]{}<>=*|`~^%$1aAéЖ三 \t\n\r\x0b\u00a0",
    *("A ", "a ", "Aa ", "A. ", "A.", "A and ", "A & ", "A of the ", "of ", "A'", "Dr. ", "St."),
    *("a.", "a_", "_a", "a/", "/a", "@a", "#a ", "--a ", "() ", "a()", "0x1 ", "A1 ", "A_B"),
    *("http://", "http://a ", "www.", "may ", "1 may ", "1 may 2024 ", "may 1, ", "2024-01"),
    *('"a', '"a" ', "“a", "「a", "`a`", "```\n", "~~~\n```\n", "```\n\n", " \n", "\t\n", "\n;"),
    *("def ", "def\n", "def a\n", "export ", "export\n", "public static ", "CREATE ", "CREATE TABLE "),
    *("since the ", "in the middle of ", "mon, ", "last ", "a few ", "1 to ", "between march and ", "since monday "),
    *("; ", "{ ", "a = ", "a=", "a(", "if "),
)
LONGEST = 8_000
# Of the processor's time, which a busy machine does not stretch: all of them together take a few seconds.
SECONDS = 30

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    for piece in PIECES:
        body = piece * (LONGEST // len(piece.encode()))
        for prefix in ("", "A", "```\n"):
            extract(body[:300], f"{prefix}{body}x", (body[:64],))
            expressions_in(f"{prefix}{body} in march", datetime(2026, 11, 15))
    print("read")
