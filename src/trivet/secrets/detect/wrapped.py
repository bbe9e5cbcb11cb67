"""Secrets broken over lines, by a mail program, a PDF or a string in code: the text is read once more without the breaks.

Only breaks between characters of which tokens are made are left out, and only where the next line goes on like one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate

import msgspec

from trivet.secrets.detect.value_shape import lazy_pattern

# A line end between two parts of a token, with the indent, the quotes and the mark of continuation around it.
_BREAK = lazy_pattern(
    r"(?<=[A-Za-z0-9_+/=-])(?P<mark>[\"']?[ \t]{0,8}[\\+]?[ \t]{0,8})\r?\n[ \t]{0,40}(?P<opening>[\"']?)"
    r"(?=(?P<rest>[A-Za-z0-9_+/=-]{6,400}))"
)

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
    breaks = [
        found.span()
        for found in _BREAK().finditer(text)
        if (_is_marked(found["mark"].strip(), found["opening"]) if only_marked else _goes_on(found["rest"]))
    ]
    if not breaks:
        return None
    were = (0, *(stop for _, stop in breaks))
    parts = [text[start:stop] for start, stop in zip(were, (*(start for start, _ in breaks), len(text)), strict=True)]
    return Unwrapped("".join(parts), tuple(accumulate(map(len, parts[:-1]), initial=0)), were)


def _is_marked(mark: str, opening: str) -> bool:
    return mark[-1:] in ("\\", "+") or (mark[:1] == opening != "")


def _goes_on(rest: str) -> bool:
    """Whether it looks generated: letters and digits, or small letters and capitals in no order of a word."""
    letters = any(map(str.isalpha, rest))
    mixed = rest != rest.lower() and rest[1:] != rest[1:].lower() and rest != rest.upper()
    return letters and (mixed or any(map(str.isdigit, rest)))
