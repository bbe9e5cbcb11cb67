"""Names: whether two may mean the same, which ones a text spells out, and whether a text contains one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import unwrap
from itertools import accumulate

from trivet.graph.canonical import canonical, form

# How near two names' vectors are above the background of their model, measured with the bundled one on labelled pairs
# (benchmarks/studies/name_pairs.py, docs/results/name_pairs.json). Vectors put names that differ in what matters close
# together, so they hardly ever decide. From SAME on, two names that no rule tells apart are one: the nearest different
# pair in the list, George Bush and George W. Bush, comes to .922.
SAME = 0.935
# Below it they are two; in between a language model is asked. Of the 58 pairs in the list that mean the same and reach
# the vectors, 4 are below it, and 54 of the 78 pairs above mean the same.
DIFFERENT = 0.68

_number = re.compile(r"\d+")
# Paths, files, identifiers and codes: names for machines, in which every difference counts.
_made_for_machines = re.compile(r"[/\\_]|\w\.\w|\w-\w*\d|[a-z][A-Z]|::|\(\)|^[A-Z]+-?\d+$")
_roman = re.compile(r"[ivx]+")


def words_of(name: str) -> frozenset[str]:
    return frozenset(form(name).split())


def could_be_one(first: str, second: str) -> bool:
    """False if a rule tells the two names apart, whatever their vectors say.

    Different numbers are different versions; names for machines are exact; and one word of a longer name (`Mira`,
    `York`, `Docker`) often means another thing.
    """
    if _made_for_machines.search(first) or _made_for_machines.search(second):
        return False
    if sorted(_number.findall(first)) != sorted(_number.findall(second)):
        return False
    one, other = words_of(first), words_of(second)
    if one == other or (min(len(one), len(other)) == 1 and (one < other or other < one)):
        return False
    return not any(_roman.fullmatch(word) for word in one ^ other)


SMALL_WORDS = frozenset("a an and de for in of on the und".split())

# From the start of a word only, and no word is tried in parts: a text may be one long word.
_short_after = re.compile(r"(?<![\w'’.&-])((?:[\w'’.&-]++[ ]){1,12})\(([A-Z][A-Z0-9]{1,7})\)")
_long_after = re.compile(r"\b([A-Z][A-Z0-9]{1,7}) \(([^()\n]{3,80})\)")


def spelled_out(text: str) -> Iterator[tuple[str, str]]:
    """Pairs of short and long name, as in "World Health Organization (WHO)" or the other way round.

    No statement is made of them: the memory mentions both names, so the walk passes from one to the other through it.
    """
    for match in _short_after.finditer(text):
        long = _ending_with_initials(match[1].split(), match[2])
        if long:
            yield match[2], long
    for match in _long_after.finditer(text):
        if _initials(match[2].split()) == match[1]:
            yield match[1], match[2]


def _ending_with_initials(words: list[str], short: str) -> str:
    """The fewest words before the bracket whose initials are the short name."""
    for start in range(len(words) - 1, -1, -1):
        part = words[start:]
        if part[0].lower() not in SMALL_WORDS and _initials(part) == short:
            return " ".join(part)
    return ""


def _initials(words: list[str]) -> str:
    """Initials of capitalised words, so that a sentence does not spell a name by chance; small words do not count."""
    counted = [word for word in words if word.lower() not in SMALL_WORDS]
    return "".join(word[0] for word in counted) if all(word[0].isupper() for word in counted) else ""


_separators = re.compile(r"[\W_]+")


class SearchableText:
    """A text in the form of canonical names, in which a name is found however its words are joined or cased."""

    def __init__(self, text: str) -> None:
        # Without the cache of `form`, which is for names: whole texts would push them out.
        words = [word for word in _separators.split(unwrap(form)(text)) if word]
        self._joined_words = "".join(words)
        ends = list(accumulate(map(len, words)))
        self._starts = {0, *ends}
        self._ends = {*ends, *(end - 1 for end, word in zip(ends, words, strict=True) if word.endswith("s"))}

    def contains(self, label: str) -> bool:
        """By whole words: `art` is not in `started`. A plural contains its singular. Without spaces, anywhere."""
        name = canonical(label)
        if not name:
            return False
        if not name.isascii():
            return name in self._joined_words
        at = self._joined_words.find(name)
        while at >= 0:
            if at in self._starts and at + len(name) in self._ends:
                return True
            at = self._joined_words.find(name, at + 1)
        return False
