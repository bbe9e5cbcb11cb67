"""Code search hits are shown as readable text."""

from __future__ import annotations

import pytest

from trivet.cli.terminal import Line, printable
from trivet.cli.views import code as views
from trivet.code.types import CodeAnswer, CodeHit, CodeStatus, reason

STATUS = CodeStatus(root="/shop", files=3, chunks=9, symbols=5, embedded=9)


def hit(**fields: object) -> CodeHit:
    given = {
        "path": "a.py",
        "start": 9,
        "end": 11,
        "symbol": "f",
        "kind": "function",
        "score": 1.0,
        "why": {},
    }
    return CodeHit(**{**given, **fields})  # type: ignore[arg-type]


def text(lines: list[Line]) -> list[str]:
    plain = (
        "".join(
            printable(part if isinstance(part, str) else part[0]) for part in one.parts
        ).rstrip()
        for one in lines
    )
    return list(plain)


@pytest.mark.parametrize(
    ("why", "expected"),
    [
        ({}, ""),
        ({"lexical": 0.4, "words": "retry after"}, "words: retry, after"),
        (
            {"words": "retry", "defines": "parse", "paths": 0.1, "dense": 0.2},
            "defines parse; words: retry; by meaning; path",
        ),
        ({"role": "test", "demoted": 0.3}, "a test, ranked lower"),
        ({"role": "test"}, "a test"),
        ({"name": "exact", "role": "code"}, "exact name"),
        ({"uses it": 1.0}, "uses it"),
    ],
)
def test_reasons_are_readable(why: dict[str, float | str], expected: str) -> None:
    assert reason(hit(why=why)) == expected


def test_lines_are_numbered_until_truncation() -> None:
    lines = text(list(views.hit_lines(hit(snippet_start=9, snippet="def f():\n\treturn 1\n…"))))
    assert lines[:4] == ["a.py:9-11  function f", " 9  def f():", "10      return 1", "  …"]


def test_answer_reports_stale_files() -> None:
    status = CodeStatus(
        root="/shop", files=3, chunks=9, symbols=5, embedded=9, stale=tuple("abcdefg")
    )
    nothing = CodeAnswer(query="q", hits=(), status=status)
    assert text(list(views.answer(nothing))) == [
        "Nothing was found in 3 files of /shop.",
        "Changed since they were indexed, so lines may differ: a, b, c, d, e and 2 more.",
    ]


def test_index_run_reports_left_out_files() -> None:
    status = CodeStatus(
        root="/shop", files=1, chunks=9, symbols=5, embedded=0, left_out=2, indexed=1
    )
    assert text(list(views.indexed(status, "/cache/shop.db", None)))[:2] == [
        "/shop: 1 file (1 indexed now), 9 chunks, 5 symbols, 0 with a vector.",
        "Left out: 2 files or folders; --left-out lists them.",
    ]
