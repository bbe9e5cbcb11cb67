"""Whether a name stands in a text, however its words are joined or cased there."""

from __future__ import annotations

import re
from itertools import accumulate

from trivet.graph.canonical import canonical, form

_separators = re.compile(r"[\W_]+")


class Written:
    """A text squeezed like a canonical name, with the places where its words begin and end."""

    def __init__(self, text: str) -> None:
        # Past the cache of `form`, which is for names: whole texts would fill the memory.
        words = [word for word in _separators.split(form.__wrapped__(text)) if word]
        self._squeezed = "".join(words)
        ends = list(accumulate(map(len, words)))
        self._starts = {0, *ends}
        self._ends = {*ends, *(end - 1 for end, word in zip(ends, words, strict=True) if word.endswith("s"))}

    def holds(self, label: str) -> bool:
        """Whole words: `art` is not in `started`. A plural holds its singular; in scripts without spaces, anywhere."""
        name = canonical(label)
        if not name:
            return False
        if not name.isascii():
            return name in self._squeezed
        at = self._squeezed.find(name)
        while at >= 0:
            if at in self._starts and at + len(name) in self._ends:
                return True
            at = self._squeezed.find(name, at + 1)
        return False
