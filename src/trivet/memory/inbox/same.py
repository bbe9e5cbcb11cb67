"""Whether two statements say the same. In doubt they do not: a question too many is better than a change missed."""

from __future__ import annotations

import re

from trivet.analyse import analyse, fold
from trivet.memory.likeness import essence

# Of statements with the same particulars, those said in other words had 0.83 to 0.96 with the bundled model, those
# that say something else mostly less than 0.8.
SAME_MEANING = 0.86
SPEAKER = "User: "

_negated = re.compile(r"\b(?:not|no|never|none|nothing|nobody|cannot|without|avoid|stop|\w+nt)\b")
# From the start of a word on, not from each of its letters: a text may be one long word.
_particular = re.compile(r"(?<!\S)\S*\d\S*|\b\w+[_/@\\]\w+\S*|(?<=\w[ ,;] )?\b[A-Z]{2,}\w*\b|(?<=[a-z,;] )[A-Z]\w+")
_CALENDAR = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april june july august september "
    "october november december morning afternoon evening weekly daily monthly".split()
)


def says_the_same(new: str, old: str, cosine: float | None = None) -> bool:
    """`cosine` is that of their vectors where there are any. Who said it is no part of what is said."""
    new, old = new.removeprefix(SPEAKER), old.removeprefix(SPEAKER)
    if essence(new) == essence(old):
        return True
    if negated(new) != negated(old) or particulars(new) != particulars(old):
        return False
    ours, theirs = analyse(new), analyse(old)
    common = set(ours) & set(theirs)
    if [term for term in ours if term in common] != [term for term in theirs if term in common]:
        return False  # "tabs over spaces" is not "spaces over tabs"
    return set(ours) <= set(theirs) or (cosine is not None and cosine >= SAME_MEANING)


def replaces(new: str, old: str) -> bool:
    """Whether the new one says of the same thing something else: most words in common, and some instead of others."""
    ours, theirs = set(analyse(new)), set(analyse(old))
    common = len(ours & theirs)
    # Two of three words of either; less would be another statement on the same subject.
    return common >= 2 and 3 * common >= 2 * max(len(ours), len(theirs)) and not says_the_same(new, old)


def negated(text: str) -> bool:
    return bool(_negated.search(fold(text).replace("'", "").replace("’", "")))


def particulars(text: str) -> frozenset[str]:
    """Numbers, identifiers, names and days: where these differ, something else is said."""
    named = {match[0].strip(".,;:!?()'\"`").lower() for match in _particular.finditer(text)}
    return frozenset(named | {day for day in _CALENDAR if re.search(rf"\b{day}s?\b", text.lower())}) - {""}
