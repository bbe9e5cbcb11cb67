"""Whether a text can name a time at all: most do not, and are spared the grammar, which takes a while to load."""

from __future__ import annotations

import re

_word = re.compile(r"[a-z]+")
_digit = re.compile(r"\d")  # one pass over a text, where the following tries each of its places
_year_or_quarter = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)|\b[qQ][1-4]\b")
_CUES = frozenset(
    "january february march april may june july august september october november december jan feb mar apr jun jul aug "
    "sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thurs fri "
    "spring summer autumn fall winter yesterday today tonight tomorrow recently lately day week weekend month quarter "
    "year morning afternoon evening night minutes hours days weeks months quarters years ago".split()
)
# Before an event: "before the launch".
_RELATIONS = frozenset("before after since until during".split())


def may_name_a_time(text: str) -> bool:
    numbered = _digit.search(text) is not None and _year_or_quarter.search(text) is not None
    return numbered or not _CUES.isdisjoint(_words(text))


def may_name_an_event(text: str) -> bool:
    return not _RELATIONS.isdisjoint(_words(text))


def _words(text: str) -> list[str]:
    return _word.findall(text.lower())
