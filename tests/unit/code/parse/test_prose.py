"""Prose is split by headings, configuration by keys, and notebooks by cells."""

from __future__ import annotations

import pytest

from trivet.code.parse import parse
from trivet.code.types import LeftOut, ParsedFile

LONG = "Words that fill a section.\n" * 50


def symbols(path: str, source: str) -> list[str]:
    parsed = parse(path, source.encode())
    assert isinstance(parsed, ParsedFile)
    return list(dict.fromkeys(chunk.symbol for chunk in parsed.chunks))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("a.md", f"# Guide\n{LONG}## Install\n{LONG}```\n# not a heading\n```\n## Use\n{LONG}# Notes\n{LONG}"),
        ("b.md", f"---\na: b\n---\nGuide\n===\n{LONG}\nInstall\n---\n{LONG}\nUse\n---\n{LONG}\nNotes\n===\n{LONG}"),
        ("a.rst", f"Guide\n=====\n\n{LONG}\nInstall\n-------\n\n{LONG}\nUse\n---\n\n{LONG}\nNotes\n=====\n\n{LONG}"),
        ("a.adoc", f"= Guide\n{LONG}== Install\n{LONG}== Use\n{LONG}= Notes\n{LONG}"),
        ("a.org", f"* Guide\n{LONG}** Install\n{LONG}** Use\n{LONG}* Notes\n{LONG}"),
        ("a.tex", f"\\section{{Guide}}\n{LONG}\\subsection{{Install}}\n{LONG}"
                  f"\\subsection{{Use}}\n{LONG}\\section{{Notes}}\n{LONG}"),
    ],
)  # fmt: skip
def test_prose_is_split_by_headings(path: str, source: str) -> None:
    found = [symbol for symbol in symbols(path, source) if symbol]
    assert found == ["Guide", "Guide > Install", "Guide > Use", "Notes"]


def test_section_carries_parent_heading() -> None:
    parsed = parse("a.md", f"# Guide\n{LONG}## Install\n{LONG}".encode())
    assert isinstance(parsed, ParsedFile)
    assert (parsed.chunks[-1].kind, parsed.chunks[-1].heading) == ("section", "Guide")


@pytest.mark.parametrize(
    ("path", "line", "keys"),
    [
        ("a.yaml", "{key}:\n{body}", "  inner: value\n"),
        ("a.toml", "[{key}]\n{body}", "inner = 1\n"),
        ("a.ini", "[{key}]\n{body}", "inner = 1\n"),
        ("a.json", '  "{key}": {{\n{body}  }},\n', '    "inner": 1,\n'),
    ],
)
def test_configuration_is_split_by_keys(path: str, line: str, keys: str) -> None:
    body = keys * (1400 // len(keys))
    source = "".join(line.format(key=key, body=body) for key in ("first", "second", "third"))
    assert symbols(path, "{\n" * path.endswith("json") + source) == ["first", "second", "third"]


NOTEBOOK = """\
{
 "cells": [
  {
   "cell_type": "markdown",
   "source": [
    "# Results"
   ]
  },
  {
   "cell_type": "code",
   "outputs": [
    {"image/png": "iVBORw0KGgo"}
   ],
   "source": [
    "def load(path):\\n",
    "    return \\"a\\"\\n"
   ]
  }
 ]
}
"""


def test_notebook_contains_cell_sources() -> None:
    parsed = parse("a.ipynb", NOTEBOOK.encode())
    assert isinstance(parsed, ParsedFile)
    assert [(one.name, one.start, one.end) for one in parsed.definitions] == [("load", 15, 16)]
    (chunk,) = parsed.chunks
    assert chunk.text == '# Results\n\ndef load(path):\n    return "a"'


def test_notebook_without_cells_is_excluded() -> None:
    assert isinstance(parse("a.ipynb", b'{"cells": []}'), LeftOut)
