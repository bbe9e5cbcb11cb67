"""Names that a memory spells out itself: "World Health Organization (WHO)" or "WHO (World Health Organization)".

No statement is made of this: the memory mentions both names, so the walk passes from one to the other through it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

SMALL_WORDS = frozenset("a an and de for in of on the und".split())

_short_after = re.compile(r"((?:[\w'’.&-]+[ ]){1,12})\(([A-Z][A-Z0-9]{1,7})\)")
_long_after = re.compile(r"\b([A-Z][A-Z0-9]{1,7}) \(([^()\n]{3,80})\)")


def spelled_out(text: str) -> Iterator[tuple[str, str]]:
    """Pairs of a short name and the long one whose initials it is."""
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
    """Only capitals count, so that a sentence does not spell a name by chance; small words may be left out."""
    counted = [word for word in words if word.lower() not in SMALL_WORDS]
    return "".join(word[0] for word in counted) if all(word[0].isupper() for word in counted) else ""
