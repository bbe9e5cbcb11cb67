"""Of two hits on the same matter the later stands first, unless the question asks about the past.

Nothing is dropped: the later takes the earlier's place, the earlier follows it, and says so where that is sure enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from itertools import combinations

import msgspec

from trivet.analyse import Question, analyse, analyse_query
from trivet.clock import local_now
from trivet.contract import Recall
from trivet.dates.past import asks_about_past
from trivet.errors import TrivetError
from trivet.memory.answer.decision import Scored
from trivet.memory.changes.contrast import BUILT_ALIKE, contrast
from trivet.memory.changes.statement import Statement, statement
from trivet.memory.changes.verdict import Linear, change_model
from trivet.search.legs.dense import NAME as DENSE
from trivet.types import Memory

# Candidates compared with each other: those shown, and some behind them, among which a later fact may stand.
BEHIND = 5
COMPARED = 12
# Of two hits on one matter the second was at most two places behind the first in 99 of 100 cases.
FARTHEST = 3
# A later hit that is less likely by itself than this share of the earlier one is about another matter.
AS_LIKELY = 0.3
# From this verdict on the two texts alone make it so clear that little is asked of the later one.
CERTAIN = 0.7
AS_LIKELY_IF_CERTAIN = 0.03
# Share of the shorter text's terms from which two texts are compared in full; the first two always are.
COMMON = 0.3
# Stems that two texts have in common at least, where nothing but words can be compared.
SHARED = 2


# A lone word or identifier looks for a place, and asks for no fact that could have changed.
ASKED_WORDS = 2


Likely = Callable[[Scored], float]


class LaterModel(msgspec.Struct, frozen=True):
    """How likely a later hit is to be the present answer where an earlier one stands above it.

    A cosine of one embedder means nothing for another, so there is a model only for those known by name; for others
    the verdict on the two texts decides.
    """

    embedders: Mapping[str, Linear]
    lifted: float
    lifted_if_sure: float  # the texts alone say that the later may update the earlier
    manifest: Mapping[str, object]


@cache
def later_model() -> LaterModel:
    try:
        return msgspec.json.decode((files("trivet.memory.answer") / "later.json").read_bytes(), type=LaterModel)
    except (OSError, msgspec.MsgspecError) as error:
        raise TrivetError(f"later.json cannot be used ({error}): is the installation whole?") from None


class Pair(msgspec.Struct, frozen=True):
    """Two candidates on the same matter. `sure`: the texts alone say so; `certain`: they leave hardly a doubt."""

    later: Memory
    earlier: Memory
    sure: bool
    certain: bool = False


def later_first(
    question: Question,
    candidates: Sequence[Scored],
    request: Recall,
    embedder: str | None,
    likely: Likely,
    names_a_time: bool = False,
) -> Sequence[Scored]:
    """The candidates in their new order, with what was found out about them. `likely`: how relevant a hit is alone."""
    # The words of a time ("on Friday") are no longer among those of the question, but they were asked.
    if len(analyse_query(question.text).words) < ASKED_WORDS:
        return candidates
    compared = candidates[: min(request.limit + BEHIND, COMPARED)]
    places = combinations(range(len(compared)), 2)
    found = (_pair(question, compared, upper, lower, embedder) for upper, lower in places)
    pairs = [pair for pair in found if pair is not None and _answers_as_well(pair, compared, likely)]
    if not pairs:
        return candidates
    marked = [_marked(hit, [pair for pair in pairs if pair.sure]) for hit in candidates]
    past = asks_about_past(question.text, local_now())
    if request.as_of is not None or (past and names_a_time):  # the time was weighed already
        return marked
    if past:
        for pair in sorted(pairs, key=lambda pair: pair.earlier.created_at, reverse=True):
            marked = _moved(marked, pair.earlier.id, pair.later.id)
    else:
        for pair in sorted(pairs, key=lambda pair: pair.later.created_at):  # the latest has the last word
            marked = _moved(marked, pair.later.id, pair.earlier.id)
    return marked


def _answers_as_well(pair: Pair, hits: Sequence[Scored], likely: Likely) -> bool:
    """Whether the later is about as relevant by itself: what has replaced an answer answers the same question."""
    by_id = {hit.memory.id: hit for hit in hits}
    earlier, later = by_id[pair.earlier.id], by_id[pair.later.id]
    return likely(later) >= (AS_LIKELY_IF_CERTAIN if pair.certain else AS_LIKELY) * likely(earlier)


def as_relevant_as_older(hits: Sequence[Scored]) -> tuple[Scored, ...]:
    """A later hit on the same matter is at least as relevant as the earlier: what is outdated must not come alone."""
    known = {hit.memory.id: hit.relevance for hit in hits}
    return tuple(
        msgspec.structs.replace(hit, relevance=max(hit.relevance, *(known.get(id, 0.0) for id in hit.newer_than)))
        if hit.newer_than
        else hit
        for hit in hits
    )


def _pair(question: Question, hits: Sequence[Scored], upper: int, lower: int, embedder: str | None) -> Pair | None:
    earlier, later = hits[upper], hits[lower]
    above = earlier.memory.created_at > later.memory.created_at  # the later stands first already
    if above:
        earlier, later = later, earlier
    if lower - upper > FARTHEST or not _comparable(earlier.memory, later.memory):
        return None
    if not above and earlier.exactness > later.exactness:
        return None  # it holds the query's words or identifiers as they stand, and the later does not
    if lower > 1 and not _share_words(earlier.memory, later.memory):
        return None
    old, new = statement(earlier.memory.content), statement(later.memory.content)
    features = contrast(new, old).features
    verdict = change_model().words.probability(features)
    sure, certain = verdict >= change_model().told, verdict >= CERTAIN
    if above:
        return Pair(later.memory, earlier.memory, True, certain) if sure else None
    asked = frozenset(question.terms)
    linear = later_model().embedders.get((embedder or "").partition("/")[0])
    beside = beside_features(asked, old, new, features["ratio"], earlier, later, upper, lower)
    if linear is not None and beside is not None:
        likely = linear.probability({**features, **beside})
        of_a_kind = earlier.memory.category == later.memory.category
        lifted = likely >= (later_model().lifted_if_sure if sure else later_model().lifted) and (sure or of_a_kind)
    else:
        lifted = sure and _words_agree(asked, old, new)
    return Pair(later.memory, earlier.memory, sure, certain) if lifted else None


def _share_words(one: Memory, other: Memory) -> bool:
    """A cheap look before the full one; the analyser has the terms of the hits at hand."""
    ours, theirs = set(analyse(one.content)), set(analyse(other.content))
    return len(ours & theirs) >= COMMON * min(len(ours), len(theirs))


def _words_agree(asked: frozenset[str], old: Statement, new: Statement) -> bool:
    """Without vectors only the words tell whether the later text answers as well: it has all that the earlier has."""
    return len(old.held & new.held) >= SHARED and not asked & (old.held - new.held)


def beside_features(
    asked: frozenset[str], old: Statement, new: Statement, ratio: float,
    earlier: Scored, later: Scored, upper: int, lower: int,
) -> dict[str, float] | None:  # fmt: skip
    """What the question and the ranking say of an earlier hit above a later one. None without vectors."""
    near_old, near_new = _cosine(earlier), _cosine(later)
    if near_old is None or near_new is None:
        return None
    only_old = float(bool(asked & (old.held - new.held)))
    return {
        "near_old": near_old,
        "near_new": near_new,
        "behind": float(min(5, lower - upper) - 1),
        "at_the_top": float(upper == 0),
        "score_gap": earlier.score - later.score,
        "only_old_asked": only_old,
        "only_new_asked": float(bool(asked & (new.held - old.held))),
        "only_old_alike": only_old * float(ratio >= BUILT_ALIKE),
        "both_asked": float(bool(asked & new.held & old.held)),
    }


def _cosine(hit: Scored) -> float | None:
    """Of the query and the hit."""
    return next((part.score for part in hit.fused.contributions if part.leg == DENSE and part.rank is not None), None)


def _comparable(earlier: Memory, later: Memory) -> bool:
    if earlier.created_at == later.created_at or earlier.scope != later.scope or earlier.owner != later.owner:
        return False
    if earlier.sensitive or later.sensitive:  # likeness would reveal them
        return False
    # Parts of one source stand side by side.
    return not (earlier.source is not None and later.source is not None and earlier.source.uri == later.source.uri)


def _marked(hit: Scored, sure: Sequence[Pair]) -> Scored:
    later = max((pair.later for pair in sure if pair.earlier.id == hit.memory.id), key=_time, default=None)
    earlier = tuple(pair.earlier.id for pair in sure if pair.later.id == hit.memory.id)
    if later is None and not earlier:
        return hit
    return msgspec.structs.replace(hit, older_than=later.id if later else None, newer_than=earlier)


def _time(memory: Memory) -> datetime:
    return memory.created_at


def _moved(hits: list[Scored], front: str, back: str) -> list[Scored]:
    """`front` directly before `back`, with at least its score, unless it stands before it already."""
    places = {hit.memory.id: place for place, hit in enumerate(hits)}
    if places[front] < places[back]:
        return hits
    moved = hits[places[front]]
    moved = msgspec.structs.replace(moved, score=max(moved.score, hits[places[back]].score))
    rest = [hit for hit in hits if hit.memory.id != front]
    return [*rest[: places[back]], moved, *rest[places[back] :]]
