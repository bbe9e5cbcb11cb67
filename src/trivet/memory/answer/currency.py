"""Of two hits on the same matter the later stands first, unless the question asks about the past.

Nothing is dropped: the later takes the earlier's place, the earlier follows it and names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import msgspec

from trivet.analyse import Question, analyse
from trivet.contract import Recall
from trivet.memory.answer.decision import Scored
from trivet.memory.answer.past import asks_about_past
from trivet.memory.changes.verdict import change_model, may_update
from trivet.types import Memory

# Candidates compared with each other: those shown, and some behind them, among which a later fact may stand.
BEHIND = 5
COMPARED = 15
# Of the words of the shorter text, in both: texts that share less are compared only in their full meaning, on save.
SHARED = 0.2


class Pair(msgspec.Struct, frozen=True):
    """Two candidates on the same matter. `sure` enough to say so of the earlier one."""

    later: str
    earlier: str
    sure: bool


def later_first(question: Question, candidates: Sequence[Scored], request: Recall) -> Sequence[Scored]:
    """The candidates in their new order, with what was found out about them."""
    compared = candidates[: min(request.limit + BEHIND, COMPARED)]
    pairs = [pair for one, other in combinations(compared, 2) if (pair := _pair(question, one, other))]
    if not pairs:
        return candidates
    marked = [_marked(hit, pairs) for hit in candidates]
    if request.as_of is not None:
        return marked
    past = asks_about_past(question.text)
    for pair in sorted(pairs, key=lambda pair: pair.sure):  # what is sure has the last word
        front, back = (pair.earlier, pair.later) if past and pair.sure else (pair.later, pair.earlier)
        if not past or pair.sure:
            marked = _moved(marked, front, back)
    return marked


def as_relevant_as_older(hits: Sequence[Scored]) -> tuple[Scored, ...]:
    """A later hit on the same matter is at least as relevant as the earlier: what is outdated must not come alone."""
    known = {hit.memory.id: hit.relevance for hit in hits}
    return tuple(
        msgspec.structs.replace(hit, relevance=max(hit.relevance, *(known.get(id, 0.0) for id in hit.newer_than)))
        if hit.newer_than
        else hit
        for hit in hits
    )


def _pair(question: Question, one: Scored, other: Scored) -> Pair | None:
    earlier, later = sorted((one.memory, other.memory), key=lambda memory: memory.created_at)
    if not _comparable(earlier, later):
        return None
    model, likely = change_model(), may_update(later.content, earlier.content).probability
    if likely >= model.told:
        return Pair(later.id, earlier.id, True)
    if likely >= model.lifted and not _asked_for(question, earlier, later):
        return Pair(later.id, earlier.id, False)
    return None


def _comparable(earlier: Memory, later: Memory) -> bool:
    if earlier.created_at == later.created_at or earlier.scope != later.scope or earlier.owner != later.owner:
        return False
    if earlier.sensitive or later.sensitive:  # likeness would reveal them
        return False
    if earlier.source is not None and later.source is not None and earlier.source.uri == later.source.uri:
        return False
    ours, theirs = set(analyse(earlier.content)), set(analyse(later.content))
    return len(ours & theirs) >= SHARED * min(len(ours), len(theirs))


def _asked_for(question: Question, earlier: Memory, later: Memory) -> bool:
    """Whether the question has a word that only the earlier memory holds: then it is rather another thing."""
    asked = set(question.terms)
    ours, theirs = set(analyse(earlier.content)), set(analyse(later.content))
    return bool(asked & (ours - theirs)) and not asked & (theirs - ours)


def _marked(hit: Scored, pairs: Sequence[Pair]) -> Scored:
    sure = [pair for pair in pairs if pair.sure]
    later = next((pair.later for pair in sure if pair.earlier == hit.memory.id), None)
    earlier = tuple(pair.earlier for pair in sure if pair.later == hit.memory.id)
    return msgspec.structs.replace(hit, older_than=later, newer_than=earlier) if later or earlier else hit


def _moved(hits: Sequence[Scored], front: str, back: str) -> list[Scored]:
    """`front` stands directly before `back`, with at least its score, unless it stands before it already."""
    places = {hit.memory.id: place for place, hit in enumerate(hits)}
    if places[front] < places[back]:
        return list(hits)
    rest = [hit for hit in hits if hit.memory.id != front]
    moved = msgspec.structs.replace(hits[places[front]], score=max(hits[places[front]].score, hits[places[back]].score))
    return [*rest[: places[back]], moved, *rest[places[back] :]]
