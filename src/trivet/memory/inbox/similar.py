"""Stored memories near a statement, and whether two statements say the same.

In doubt they do not: asking the user once too often is better than missing a change.
"""

from __future__ import annotations

import re

import msgspec

from trivet.analyse import analyse, fold
from trivet.contract import MAX_QUERY_CHARACTERS, Recall
from trivet.memory.changes.statement import SPEAKER
from trivet.memory.engine import Engine
from trivet.memory.likeness import essence, fingerprint
from trivet.memory.recall import follow
from trivet.search.legs.dense import NAME as DENSE
from trivet.types import Memory

# See Background. Of statements with the same particulars, paraphrases had 0.83 to 0.96, others mostly less than 0.8.
SAME_MEANING = 0.86

_negated = re.compile(r"\b(?:not|no|never|none|nothing|nobody|cannot|without|avoid|stop|\w+nt)\b")
# Matched from the start of a word only: a text may be one long word, and from each letter it would be quadratic.
_particular = re.compile(r"(?<!\S)\S*\d\S*|\b\w+[_/@\\]\w+\S*|(?<=\w[ ,;] )?\b[A-Z]{2,}\w*\b|(?<=[a-z,;] )[A-Z]\w+")
_calendar = re.compile(
    r"\b(monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|june|july|august|september|"
    r"october|november|december|morning|afternoon|evening|weekly|daily|monthly)s?\b"
)


def says_the_same(new: str, old: str, nearness: float | None = None) -> bool:
    """`nearness` is that of their vectors, if there are any. The speaker does not count."""
    new, old = new.removeprefix(SPEAKER), old.removeprefix(SPEAKER)
    if essence(new) == essence(old):
        return True
    if negated(new) != negated(old) or particulars(new) != particulars(old):
        return False
    ours, theirs = analyse(new), analyse(old)
    common = set(ours) & set(theirs)
    if [term for term in ours if term in common] != [term for term in theirs if term in common]:
        return False  # "tabs over spaces" is not "spaces over tabs"
    return set(ours) <= set(theirs) or (nearness is not None and nearness >= SAME_MEANING)


def replaces(new: str, old: str) -> bool:
    """Whether the new statement says something else of the same thing: most words in common, some exchanged."""
    ours, theirs = set(analyse(new)), set(analyse(old))
    common = len(ours & theirs)
    # Two of three words of either; less would be another statement on the same subject.
    return common >= 2 and 3 * common >= 2 * max(len(ours), len(theirs)) and not says_the_same(new, old)


def negated(text: str) -> bool:
    return bool(_negated.search(fold(text).replace("'", "").replace("’", "")))


def particulars(text: str) -> frozenset[str]:
    """Numbers, identifiers, names and days: statements that differ in these say different things."""
    named = {match[0].strip(".,;:!?()'\"`").lower() for match in _particular.finditer(text)}
    return frozenset(named | set(_calendar.findall(text.lower()))) - {""}


CANDIDATES = 8


class NearMemory(msgspec.Struct, frozen=True):
    memory: Memory
    nearness: float | None = None


def near(engine: Engine, text: str) -> tuple[NearMemory, ...]:
    """Memories near a text, the likeliest first. Sensitive ones unmasked: they are compared here, not shown."""
    query = text.replace('"', " ")[:MAX_QUERY_CHARACTERS]
    found: dict[str, float | None] = {}
    background = engine.embedding.background_now()
    if query.strip():
        answer, _ = follow(engine, Recall(query=query, limit=CANDIDATES, collapse=False, expand=False, rerank="off"))
        for hit in answer.hits:
            dense = hit.why.legs.get(DENSE)
            found[hit.id] = background.nearness(dense.score) if dense and dense.rank is not None else None
    for id in engine.store.lexical.similar("", fingerprint(text), CANDIDATES, engine.viewer):
        found.setdefault(id, None)
    memories = engine.store.memories.get_many(list(found))
    return tuple(
        NearMemory(memories[id], how_near)
        for id, how_near in found.items()
        if id in memories and memories[id].state in ("active", "archived")
    )
