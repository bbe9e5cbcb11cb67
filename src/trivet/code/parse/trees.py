"""Runs the parsers: grammars are loaded when a file needs them, and no file may take longer than its size allows."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from trivet.code.parse.region import Region
from trivet.code.parse.walk import find_definitions

if TYPE_CHECKING:
    from tree_sitter import Range, Tree

# Ordinary code parses in .1 to .5 microseconds a byte. Some grammars need quadratic time or worse to recover from
# nonsense (20 kB of `{-` keep the JavaScript grammar busy for 50 seconds); such a file is cut by lines. The limit is
# of the clock on the wall, so it leaves room for a machine that does ten other things.
_BASE_MICROSECONDS = 2_000_000
_MICROSECONDS_PER_BYTE = 10

SCRIPTS = "typescript"  # the grammar for scripts in pages: it reads JavaScript too
_FRONT_MATTER = re.compile(rb"\A---\n(.*?)\n---", re.DOTALL)


def has_grammar(language: str) -> bool:
    from trivet.code.parse.grammars import GRAMMARS

    return language in GRAMMARS


def regions_of(language: str, source: bytes) -> list[Region] | None:
    """The definitions of a file in UTF-8, or None where its parser cannot cope."""
    from trivet.code.parse.grammars import GRAMMARS

    grammar = GRAMMARS.get(language)
    tree = None if grammar is None else _parse(language, source)
    if grammar is None or tree is None:
        return None
    return find_definitions(tree.root_node, source, grammar)


def regions_of_scripts(source: bytes) -> list[Region] | None:
    """The definitions of the scripts in a page of HTML, Vue, Svelte or Astro."""
    from trivet.code.parse.grammars import GRAMMARS

    scripts = list(_scripts(source))
    if not scripts:
        return []
    tree = _parse(SCRIPTS, source, _ranges(source, scripts))
    return None if tree is None else find_definitions(tree.root_node, source, GRAMMARS[SCRIPTS])


def _scripts(source: bytes) -> Iterator[tuple[int, int]]:
    """Where scripts begin and end: the part before an Astro page, and what is in `<script>`."""
    front = _FRONT_MATTER.match(source)
    if front is not None:
        yield front.span(1)
    lower, at = source.lower(), 0
    while (tag := lower.find(b"<script", at)) >= 0:
        start = lower.find(b">", tag) + 1
        at = lower.find(b"</script", start)
        if not start or at < 0:
            return
        yield start, at


def _ranges(source: bytes, spans: Sequence[tuple[int, int]]) -> list[Range]:
    from tree_sitter import Range

    found, row, at = [], 0, 0
    for start, end in spans:
        row, at = row + source.count(b"\n", at, start), start
        first = (row, start - (source.rfind(b"\n", 0, start) + 1))
        row, at = row + source.count(b"\n", at, end), end
        found.append(Range(first, (row, end - (source.rfind(b"\n", 0, end) + 1)), start, end))
    return found


def _parse(language: str, source: bytes, ranges: Sequence[Range] | None = None) -> Tree | None:
    from semble_grammars import get_language
    from tree_sitter import Parser

    limit = _BASE_MICROSECONDS + _MICROSECONDS_PER_BYTE * len(source)
    with warnings.catch_warnings():
        # It is deprecated in favour of a callback, with which tree-sitter 0.25 and 0.26 crash before Python 3.14.
        warnings.simplefilter("ignore", DeprecationWarning)
        parser = Parser(get_language(language), included_ranges=ranges, timeout_micros=limit)
    try:
        return parser.parse(source)
    except ValueError:  # "Parsing failed": its time is over
        return None
