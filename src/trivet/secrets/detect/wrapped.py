"""Secrets broken over lines, by a mail program, a PDF or a string in code: the text is read again without the breaks.

Only breaks between characters of which tokens are made are left out, and only where the next line goes on like one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate

import msgspec

from trivet.secrets.detect.value_shape import LazyPattern

# What a token is made of.
_TOKEN = r"[A-Za-z0-9_+/=-]"
# A line end with the indent and the quote of the next line, and the mark of continuation before it.
_LINE_END = LazyPattern(rf"\r?\n[ \t]{{0,40}}(?P<opening>[\"']?)(?=(?P<rest>{_TOKEN}{{6,400}}))")
_MARK = LazyPattern(rf"(?<={_TOKEN})[\"']?[ \t]{{0,8}}[\\+]?[ \t]{{0,8}}$")
LONGEST_MARK = 20

Spans = Iterator[tuple[str, int, int]]


class Unwrapped(msgspec.Struct, frozen=True):
    """A text without some of its line ends, and where its parts stood."""

    text: str
    starts: tuple[int, ...]  # of each part, here
    were: tuple[int, ...]  # of each part, in the text as it was

    def spans(self, find: Callable[[str], Spans]) -> Spans:
        """What `find` finds over a break, by its place in the text as it was."""
        for kind, start, stop in find(self.text):
            first, last = bisect_right(self.starts, start) - 1, bisect_right(self.starts, stop - 1) - 1
            if first != last:
                yield kind, start + self.were[first] - self.starts[first], stop + self.were[last] - self.starts[last]


def unwrapped(text: str, only_marked: bool) -> Unwrapped | None:
    """None if nothing is broken. `only_marked`: only where quotes or a mark of continuation say that it goes on."""
    breaks = [span for found in _LINE_END().finditer(text) if (span := _break(text, found, only_marked)) is not None]
    if not breaks:
        return None
    were = (0, *(stop for _, stop in breaks))
    parts = [text[start:stop] for start, stop in zip(were, (*(start for start, _ in breaks), len(text)), strict=True)]
    return Unwrapped("".join(parts), tuple(accumulate(map(len, parts[:-1]), initial=0)), were)


def _break(text: str, found: re.Match[str], only_marked: bool) -> tuple[int, int] | None:
    """What is left out so that the token is whole."""
    if not only_marked and not _goes_on(found["rest"]):
        return None
    start = max(0, found.start() - LONGEST_MARK)
    mark = _MARK().search(text[start : found.start()])
    if mark is None or (only_marked and not _is_marked(mark[0].strip(), found["opening"])):
        return None
    return start + mark.start(), found.end()


def _is_marked(mark: str, opening: str) -> bool:
    return mark[-1:] in ("\\", "+") or (mark[:1] == opening != "")


def _goes_on(rest: str) -> bool:
    """Whether it looks generated: letters and digits, or small letters and capitals in no order of a word."""
    letters = any(map(str.isalpha, rest))
    mixed = rest != rest.lower() and rest[1:] != rest[1:].lower() and rest != rest.upper()
    return letters and (mixed or any(map(str.isdigit, rest)))
