"""Mentions of `path:symbol` in a memory are found and checked against the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from trivet.code.code_index import CodeIndex
from trivet.code.memory_links import Link, check, links


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see src/app.py:parse_config.", [("src/app.py", "parse_config")]),
        ("(`./app.ts:Client.send`)", [("app.ts", "Client.send")]),
        ("lib/a.rs:Parser::next, lib/a.rs:Parser::next", [("lib/a.rs", "Parser::next")]),
        ("app.test.js:Suite#runs", [("app.test.js", "Suite#runs")]),
        ("a line, src/app.py:120, is no symbol", []),
        ("https://example.com:port/x.py and C:app.py", []),
        ("at 10:30, e.g.:nothing, key:value, Makefile:all", []),
    ],
)
def test_links_are_found(text: str, found: list[tuple[str, str]]) -> None:
    assert links(text) == tuple(Link(*one) for one in found)


def test_link_is_checked_within_its_container(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class One:\n    def run(self) -> int:\n        return 1\n")
    (tmp_path / "b.py").write_text("class Two:\n    def run(self) -> int:\n        return 2\n")
    texts = [
        ("1", "a.py:One.run"),
        ("2", "a.py:Two.run"),
        ("3", "b.py:run"),
        ("4", "a.py:stop"),
        ("5", "c.py:stop"),
    ]
    with CodeIndex.open(tmp_path) as index:
        states = {one.memory: (one.state, one.places) for one in check(texts, index)}
    assert states == {
        "1": ("ok", ()),
        "2": ("moved", ("b.py:2",)),
        "3": ("ok", ()),
        "4": ("gone", ()),
        "5": ("unknown", ()),
    }
