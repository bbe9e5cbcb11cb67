"""Whether a text can name a time at all: most do not, and are spared the grammar, which takes a while to load."""

from __future__ import annotations

import re

_year_or_quarter = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)|\b[qQ][1-4]\b")
# Of which one is in each of those: to look for two characters takes a fraction of the time.
_NUMBERED = ("19", "20", "q", "Q")
# Small letters, and spaces for whatever else there is.
_letters = bytes(byte | 0x20 if chr(byte).isalpha() and byte < 0x80 else 0x20 for byte in range(256))
_CUES = frozenset(
    b"january february march april may june july august september october november december jan feb mar apr jun jul "
    b"aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thurs fri "
    b"spring summer autumn fall winter yesterday today tonight tomorrow recently lately day week weekend month quarter "
    b"year morning afternoon evening night minutes hours days weeks months quarters years ago".split()
)
# Before an event: "before the launch".
_RELATIONS = frozenset(b"before after since until during".split())


def may_name_a_time(text: str) -> bool:
    numbered = any(sign in text for sign in _NUMBERED) and _year_or_quarter.search(text) is not None
    return numbered or not _CUES.isdisjoint(_words(text))


def may_name_an_event(text: str) -> bool:
    return not _RELATIONS.isdisjoint(_words(text))


def _words(text: str) -> list[bytes]:
    return text.encode(errors="replace").translate(_letters).split()
