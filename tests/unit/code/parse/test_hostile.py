"""Hostile input is parsed in work proportional to its size."""

from __future__ import annotations

import pytest

from trivet.code.parse import parse
from trivet.code.parse import parsers as trees
from trivet.code.parse.chunks import HARD
from trivet.code.types import ParsedFile

HALF = 20_000


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("a.py", b"(" * HALF),
        ("a.py", b"[" * HALF + b"]" * HALF),
        ("a.py", b"(\n" * HALF),
        ("a.py", b"".join(b" " * depth + b"class A:\n" for depth in range(600))),
        ("a.ts", b"namespace a {\n" * 2000 + b"}\n" * 2000),
        ("a.md", b"# a\n" * HALF),
        ("a.yaml", b"a:\n" * HALF),
        ("a.txt", b"\n" * HALF + b"a"),
        ("a.vue", b"<script>\n" * HALF),
        ("a.vue", b"<script></script>\n" * 2000),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value[:6]!r}",
)
def test_deep_or_repetitive_input_is_chunked(path: str, source: bytes) -> None:
    parsed = parse(path, source)
    assert isinstance(parsed, ParsedFile)
    assert parsed.chunks[0].start == 1
    assert all(len(chunk.text) <= HARD for chunk in parsed.chunks)


def test_parser_timeout_falls_back_to_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """20 kB of `{-` keep the JavaScript grammar busy for most of a minute."""
    monkeypatch.setattr(trees, "_BASE_MICROSECONDS", 10_000)
    monkeypatch.setattr(trees, "_MICROSECONDS_PER_BYTE", 1)
    parsed = parse("a.js", b"{-\n" * 10_000)
    assert isinstance(parsed, ParsedFile)
    assert (parsed.language, parsed.definitions) == ("text", ())
    assert parsed.chunks[-1].end == 10_000
