"""Ordering hits so that a later memory comes before the earlier one it updates.

The earlier one stays, marked if the update is sure; a later one that no leg found is added.
Questions about the past reverse the order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from trivet.analyse import Question, analyse_query
from trivet.common.clock import local_now
from trivet.contract import Recall
from trivet.dates.spans import may_mention_time
from trivet.memory.answer.decision import ScoredCandidate
from trivet.types import Filter, Memory

if TYPE_CHECKING:
    from trivet.store import Store

_about_past = re.compile(
    r"\b(?:at first|(?:in|at) the (?:beginning|start|outset)|to begin with|original(?:ly)?"
    r"|initial(?:ly)?|former(?:ly)?"
    r"|previous(?:ly)?|earlier|back then|back when|back in(?! \d{1,2}\b)|in the past|at th(?:e"
    r"|at) time|in those days"
    r"|used? to|once had"
    r"|older|(?:the|my|our|your|his|her|their|\w+'s) old|the first (?:plan|version|idea|choice)"
    r"|any ?more"
    r"|working (?:name|title)|history|first (?:decide|plan|choose|chose|want|say|said|think"
    r"|thought)\w*"
    r"|(?:should|would) have been|had (?:we|i|they|he|she|it|the \w+))\b",
    re.IGNORECASE,
)
# The words for before, formerly, at first and original in German, French, Spanish and Hungarian.
# Hungarian puts "before" after its noun, German in front.
_about_past_elsewhere = re.compile(
    r"\b(?:früher|vorher|zuvor|ursprünglich|zuerst|anfangs|damals|bevor|ehemalige\w*|vorherige\w*"
    r"|vor de[mnr]"
    r"|avant|auparavant|autrefois|à l['’]origine|au début|ancien(?:ne)?s?|précédent\w*|d['’]abord"
    r"|initialement"
    r"|antes|anterior\w*|al principio|originalmente|antigu[oa]s?|previamente|inicialmente"
    r"|korábban|régebben|régen|eredetileg|azelőtt|előtt|előző\w*|eleinte|először)\b"
    r"|以前|之前|原来|起初|最初|当初|原先|かつて|もともと",
    re.IGNORECASE,
)
# "What did it cost before", but not "must I ask before I delete" or "until when is it open".
_bounded = re.compile(r"\b(?:before|until(?! when\b)|prior to|as of)\b", re.IGNORECASE)
# Only together with "was": "who was her first tutor", "where was it supposed to be".
_not_any_more = re.compile(
    r"\bfirst\b(?! name| aid| thing| class| floor)|\bsupposed to\b", re.IGNORECASE
)
_was = re.compile(r"\b(?:was|were|did|had|used)\b", re.IGNORECASE)
_holds = re.compile(r"\b(?:is|are|do|does|can|may|must|shall|should|will)\b", re.IGNORECASE)

# "What was it in spring" asks about the past; "what do we sow in March" does not.
_past_tense = re.compile(r"\b(?:was|were|did|had|been|used|\w{2,}ed)\b", re.IGNORECASE)

# Candidates checked beyond those shown, which may include a later fact.
LOOKAHEAD = 5
MAX_COMPARED = 12
# A single word or identifier asks for no fact that could have changed.
MIN_QUERY_WORDS = 2
# The later memory moves up if its score is lower by at most this share times the probability of the
# update, or if it follows directly, since scores of few memories are far apart. Most similar
# memories are no updates: a larger share changed the first hit of every eighth plain question
# (docs/decisions/0029, 0034, 0039).
MAX_SCORE_GAP = 0.3
ADJACENT_PROBABILITY = 0.45
# From this probability on it always moves up, even if no leg found it.
UNCONDITIONAL_PROBABILITY = 0.9
# An agent acts on the first hits, so their likely updates are added.
UPDATES_ADDED_UP_TO_RANK = 3

# Reads memories that ranked too low to be read.
ReadUnread = Callable[[Sequence[str]], Sequence[ScoredCandidate]]

_quoted = re.compile(r'"[^"]*"')


class UpdatePair(msgspec.Struct, frozen=True):
    newer: Memory
    older: Memory
    probability: float
    # The newer one more probably updates another memory, so it must score nearly as well.
    contested: bool = False

    @property
    def sure(self) -> bool:
        # Slow to load; few answers contain an update.
        from trivet.memory.supersession.verdict import change_model

        return self.probability >= change_model().report_from


def order_newer_first(
    store: Store,
    question: Question,
    candidates: Sequence[ScoredCandidate],
    request: Recall,
    filter: Filter,
    unread: ReadUnread,
    names_a_time: bool = False,
) -> Sequence[ScoredCandidate]:
    if _query_word_count(question.text) < MIN_QUERY_WORDS:
        return candidates
    found = _pairs(store, candidates[: min(request.limit + LOOKAHEAD, MAX_COMPARED)], filter)
    if not found:
        return candidates
    candidates = _add_unread_updates(candidates, found, unread)
    places = {hit.memory.id: place for place, hit in enumerate(candidates)}
    as_it_stands = _names_exact_value(question)
    pairs = _best_successors(
        [pair for pair in found if _should_precede(pair, candidates, places, as_it_stands)], places
    )
    replaced = {pair.older.id for pair in pairs}
    others = [
        pair for pair in found if pair.older.id not in replaced and _is_reported(pair, places)
    ]
    reported = [*pairs, *_best_successors(others, places)]
    candidates = _insert_missing_updates(candidates, reported, places)
    marked = [
        _with_update_marks(hit, [pair for pair in reported if pair.sure]) for hit in candidates
    ]
    past = asks_about_past(question.text, local_now())
    # "What did we decide last week": the scores already prefer that time.
    weighed = past and names_a_time and not says_past(question.text)
    if request.as_of is not None or weighed:
        return marked
    if past:
        for pair in sorted(
            _likeliest_per_newer(pairs), key=lambda pair: pair.older.created_at, reverse=True
        ):
            marked = _move_before(marked, pair.older.id, pair.newer.id)
    else:
        for pair in sorted(pairs, key=lambda pair: pair.newer.created_at):  # the latest comes first
            marked = _move_before(marked, pair.newer.id, pair.older.id)
    return marked


def _query_word_count(text: str) -> int:
    spaced = len(_quoted.sub(" ", text).split())
    return spaced if spaced >= MIN_QUERY_WORDS else max(spaced, len(analyse_query(text).words))


def raise_newer_relevance(hits: Sequence[ScoredCandidate]) -> tuple[ScoredCandidate, ...]:
    """Make a newer hit at least as relevant, so that the older never stays alone."""
    known = {hit.memory.id: hit.relevance for hit in hits}
    return tuple(
        msgspec.structs.replace(
            hit, relevance=max(hit.relevance, *(known.get(id, 0.0) for id in hit.newer_than))
        )
        if hit.newer_than
        else hit
        for hit in hits
    )


def _add_unread_updates(
    candidates: Sequence[ScoredCandidate], pairs: Sequence[UpdatePair], unread: ReadUnread
) -> list[ScoredCandidate]:
    known = {hit.memory.id for hit in candidates}
    return [*candidates, *unread([pair.newer.id for pair in pairs if pair.newer.id not in known])]


def _pairs(store: Store, hits: Sequence[ScoredCandidate], filter: Filter) -> list[UpdatePair]:
    older = {hit.memory.id: hit.memory for hit in hits if not hit.memory.sensitive}
    rows = store.likely_updates.updates_of(sorted(older))
    if not rows:
        return []
    # Loads the language tables, which few answers need.
    from trivet.memory.supersession.statement import states_explicit_change

    known = {hit.memory.id: hit.memory for hit in hits}
    absent = [
        row.newer
        for row in rows
        if row.newer not in known and row.probability >= ADJACENT_PROBABILITY
    ]
    visible = store.memories.shown(list(dict.fromkeys(absent)), filter) if absent else {}
    known |= store.memories.get_many(list(visible)) if visible else {}
    return [
        UpdatePair(known[row.newer], older[row.older], row.probability, bool(row.contested))
        for row in rows
        if row.newer in known and states_explicit_change(known[row.newer].content)
    ]


def _is_reported(pair: UpdatePair, places: Mapping[str, int]) -> bool:
    found = pair.newer.id in places or places[pair.older.id] < UPDATES_ADDED_UP_TO_RANK
    return found and pair.sure and not pair.contested


def _names_exact_value(question: Question) -> bool:
    numbered = any(character.isdigit() for word in question.words for character in word.text)
    return numbered or bool(question.identifiers or question.phrases)


def _should_precede(
    pair: UpdatePair, hits: Sequence[ScoredCandidate], places: Mapping[str, int], as_it_stands: bool
) -> bool:
    upper, lower = places[pair.older.id], places.get(pair.newer.id)
    if lower is None:
        return pair.probability >= UNCONDITIONAL_PROBABILITY and not pair.contested
    if lower < upper:
        return pair.sure
    # An older memory with more of the query's words wins only if the query names a value ("port
    # 9777") or the update is doubtful; otherwise one missing word would decide.
    if hits[upper].exactness > hits[lower].exactness and (
        as_it_stands or pair.probability < UNCONDITIONAL_PROBABILITY
    ):
        return False
    if (
        pair.probability
        >= (ADJACENT_PROBABILITY if lower == upper + 1 else UNCONDITIONAL_PROBABILITY)
        and not pair.contested
    ):
        return True
    return hits[lower].score >= (1 - MAX_SCORE_GAP * pair.probability) * hits[upper].score


def _best_successors(pairs: Sequence[UpdatePair], places: Mapping[str, int]) -> list[UpdatePair]:
    """Keep one update of each memory: a fact has one successor."""
    best: dict[str, UpdatePair] = {}
    for pair in sorted(pairs, key=lambda pair: places.get(pair.newer.id, len(places))):
        best.setdefault(pair.older.id, pair)
    return list(best.values())


def _likeliest_per_newer(pairs: Sequence[UpdatePair]) -> list[UpdatePair]:
    """Keep the likeliest predecessor of each newer memory."""
    best: dict[str, UpdatePair] = {}
    for pair in sorted(pairs, key=lambda pair: -pair.probability):
        best.setdefault(pair.newer.id, pair)
    return list(best.values())


def _insert_missing_updates(
    hits: Sequence[ScoredCandidate], pairs: Sequence[UpdatePair], places: Mapping[str, int]
) -> list[ScoredCandidate]:
    brought: dict[str, list[Memory]] = {}
    for pair in pairs:
        known = [one for those in brought.values() for one in those]
        if pair.newer.id not in places and pair.newer not in known:
            brought.setdefault(pair.older.id, []).append(pair.newer)
    return [
        one
        for hit in hits
        for one in (
            hit,
            *(
                msgspec.structs.replace(hit, memory=newer)
                for newer in brought.get(hit.memory.id, ())
            ),
        )
    ]


def _with_update_marks(hit: ScoredCandidate, sure: Sequence[UpdatePair]) -> ScoredCandidate:
    newer = max(
        (pair.newer for pair in sure if pair.older.id == hit.memory.id), key=_time, default=None
    )
    older = tuple(pair.older.id for pair in sure if pair.newer.id == hit.memory.id)
    if newer is None and not older:
        return hit
    return msgspec.structs.replace(hit, older_than=newer.id if newer else None, newer_than=older)


def _time(memory: Memory) -> datetime:
    return memory.created_at


def _move_before(hits: list[ScoredCandidate], front: str, back: str) -> list[ScoredCandidate]:
    places = {hit.memory.id: place for place, hit in enumerate(hits)}
    if places[front] < places[back]:
        return hits
    moved = hits[places[front]]
    moved = msgspec.structs.replace(moved, score=max(moved.score, hits[places[back]].score))
    rest = [hit for hit in hits if hit.memory.id != front]
    return [*rest[: places[back]], moved, *rest[places[back] :]]


def asks_about_past(query: str, now: datetime | None = None) -> bool:
    """Return whether a question asks for an earlier state: "at first", "before", "in October".

    "What did we decide" alone asks for the current state. `now` is local time.
    """
    if says_past(query):
        return True
    if not (may_mention_time(query) and _past_tense.search(query)):
        return False
    # Loading it takes milliseconds, and few queries need it.
    from trivet.dates.parse import find_time_expressions

    seen = now or datetime.now()
    spans = [span for expression in find_time_expressions(query, seen) for span in expression.spans]
    today = seen.replace(hour=0, minute=0, second=0, microsecond=0)
    return any(span.end is not None and span.end <= today for span in spans)


def says_past(query: str) -> bool:
    """Return whether its words say so, without a time: "at first", "my old", "früher"."""
    if _about_past.search(query) or _about_past_elsewhere.search(query):
        return True
    if _not_any_more.search(query) and _was.search(query):
        return True
    return bool(_bounded.search(query) and (_was.search(query) or not _holds.search(query)))
