"""Proposals for the inbox: whether a statement is new, and which memory it would replace.

When in doubt, two statements differ: an unnecessary question costs less than a missed change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from trivet.analyse import analyse, fold
from trivet.common.clock import moment, now
from trivet.common.ids import check_id, new_id
from trivet.contract import MAX_QUERY_CHARACTERS, InboxPropose, Recall
from trivet.errors import Conflict, InvalidInput, RerankerError
from trivet.memory.engine import Engine
from trivet.memory.recall import recall_with_decision
from trivet.memory.similarity import content_key, fingerprint
from trivet.memory.supersession.statement import SPEAKER
from trivet.memory.supersession.verdict import (
    OlderText,
    change_model,
    judge_by_features,
    judge_updates,
)
from trivet.search.legs.dense import NAME as DENSE
from trivet.types import LOCAL, Memory, Proposal, Proposed

Known = Literal["stored already", "waits already", "rejected before"]

# Bounds the proposals searched for other wordings; equal ones are found in all.
LATEST_PROPOSALS = 300
_STATUS_OF_STATE: dict[str, Known] = {
    "waiting": "waits already",
    "accepted": "stored already",
    "rejected": "rejected before",
}
LONGEST_TAG = 64
MASKED = "A secret in it was left out and not kept."


def propose(engine: Engine, request: InboxPropose) -> Proposed:
    """Add a statement unless it is known; one that may replace a memory supersedes it."""
    check_category(engine, request.category)
    engine.guard.check_scope(request.scope or engine.settings.scope)
    content, redacted = engine.guard.masked(request.content)
    if not content.strip():
        raise InvalidInput(
            "content: nothing is left after its private part was removed. Nothing was proposed."
        )
    words = content_key(content)
    known = engine.store.inbox.same(words) or _reworded(engine, content)
    if known is not None:
        return _known(known, redacted)
    near_by = near(engine, content)
    stored = next(
        (one for one in near_by if is_same_statement(content, one.memory.content, one.nearness)),
        None,
    )
    if stored is not None:
        return Proposed(status="stored already", same_as=stored.memory.id, redacted=redacted)
    proposal = _proposal(engine, request, content, near_by, bool(redacted))
    with engine.store.together():  # two agents may propose the same at the same time
        known = engine.store.inbox.same(words)
        if known is not None:
            return _known(known, redacted)
        engine.store.inbox.add(proposal, words)
    return Proposed(status="waiting", id=proposal.id, same_as=proposal.memory, redacted=redacted)


def _known(known: Proposal, redacted: dict[str, int]) -> Proposed:
    return Proposed(
        status=_STATUS_OF_STATE[known.state], id=known.id, same_as=known.stored, redacted=redacted
    )


def check_target_memory(engine: Engine, proposal: Proposal) -> None:
    """Raise unless an update or supersession names a living memory."""
    if proposal.memory is not None:
        check_id(
            proposal.memory, "memory"
        )  # even if the action does not use it, since it is stored
    if proposal.action not in ("update", "supersede"):
        return
    if proposal.memory is None:
        raise InvalidInput(
            f"memory: the action {proposal.action} needs the id of a memory. Nothing was changed."
        )
    if engine.store.memories.get(check_id(proposal.memory, "memory")).state == "deleted":
        raise Conflict(
            f"Memory {proposal.memory} was forgotten. Restore it, or set the action to add."
        )


def check_category(engine: Engine, category: str) -> None:
    known = engine.settings.categories
    if category not in known:
        raise InvalidInput(
            f"category: {engine.guard.without_secrets(category)!r} is not one of "
            f"{', '.join(known)}."
        )


def _reworded(engine: Engine, content: str) -> Proposal | None:
    latest = engine.store.inbox.latest(LATEST_PROPOSALS)
    return next((one for one in latest if is_same_statement(content, one.content)), None)


def _proposal(
    engine: Engine, request: InboxPropose, content: str, near_by: Sequence[NearMemory], masked: bool
) -> Proposal:
    tags = (engine.guard.masked(tag)[0] for tag in request.tags)
    proposal = Proposal(
        id=new_id(),
        content=content,
        kind=request.kind,
        reason=" ".join(
            [engine.guard.masked(request.reason)[0], *([MASKED] if masked else [])]
        ).strip(),
        action=request.action,
        memory=request.memory,
        category=request.category,
        tags=tuple(dict.fromkeys(tag[:LONGEST_TAG] for tag in tags)),
        scope=request.scope or engine.settings.scope,
        source=engine.guard.masked(request.source)[0] if request.source else None,
        created_at=moment(now()),
        owner=engine.viewer or LOCAL,
    )
    check_target_memory(engine, proposal)
    if proposal.action != "add":
        return proposal
    found = _updated(engine, content, [one for one in near_by if _is_own(engine, one)])
    if found is None:
        return proposal
    old, why = found
    reason = " ".join([proposal.reason, f"It may update that memory: {why}."]).strip()
    return msgspec.structs.replace(proposal, action="supersede", memory=old.id, reason=reason)


def _updated(
    engine: Engine, content: str, near_by: Sequence[NearMemory]
) -> tuple[Memory, str] | None:
    serving = engine.embedding.serving()
    identity = serving.identity if serving else None
    olds = [OlderText(one.memory.content, one.nearness) for one in near_by]
    try:
        compared = judge_updates if engine.settings.changes == "read" else judge_by_features
        verdicts = compared(content, olds, identity)
    except RerankerError as error:
        engine.worker.note(str(error))
        verdicts = judge_by_features(content, olds, identity)
    judged = list(zip(near_by, verdicts, strict=True))
    for one, verdict in judged:
        if is_rewording(content, one.memory.content):
            return one.memory, verdict.why
    likely = [
        (one, verdict)
        for one, verdict in judged
        if verdict.probability >= change_model().report_from
    ]
    best = max(likely, key=lambda found: found[1].probability, default=None)
    return (best[0].memory, best[1].why) if best else None


def _is_own(engine: Engine, one: NearMemory) -> bool:
    return one.memory.owner == (engine.viewer or LOCAL) and not one.memory.sensitive


# With the same particulars, paraphrases scored 0.83 to 0.96, others mostly below 0.8.
SAME_MEANING_NEARNESS = 0.86

_negated = re.compile(r"\b(?:not|no|never|none|nothing|nobody|cannot|without|avoid|stop|\w+nt)\b")
# Only from the start of a word: otherwise one long word would take quadratic time.
_particular = re.compile(
    r"(?<!\S)\S*\d\S*|\b\w+[_/@\\]\w+\S*|(?<=\w[ ,;] )?\b[A-Z]{2,}\w*\b|(?<=[a-z,;] )[A-Z]\w+"
)
_calendar = re.compile(
    r"\b(monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|june|july|august|september|"
    r"october|november|december|morning|afternoon|evening|weekly|daily|monthly)s?\b"
)


def is_same_statement(new: str, old: str, nearness: float | None = None) -> bool:
    """Return whether both say the same; `nearness` is that of their vectors."""
    new, old = new.removeprefix(SPEAKER), old.removeprefix(SPEAKER)
    if content_key(new) == content_key(old):
        return True
    if negated(new) != negated(old) or particulars(new) != particulars(old):
        return False
    ours, theirs = analyse(new), analyse(old)
    common = set(ours) & set(theirs)
    if [term for term in ours if term in common] != [term for term in theirs if term in common]:
        return False  # "tabs over spaces" is not "spaces over tabs"
    return set(ours) <= set(theirs) or (nearness is not None and nearness >= SAME_MEANING_NEARNESS)


def is_rewording(new: str, old: str) -> bool:
    ours, theirs = set(analyse(new)), set(analyse(old))
    common = len(ours & theirs)
    # With less than two thirds in common, it is another statement.
    return (
        common >= 2
        and 3 * common >= 2 * max(len(ours), len(theirs))
        and not is_same_statement(new, old)
    )


def negated(text: str) -> bool:
    return bool(_negated.search(fold(text).replace("'", "").replace("’", "")))


def particulars(text: str) -> frozenset[str]:
    """Return numbers, identifiers, names and days."""
    named = {match[0].strip(".,;:!?()'\"`").lower() for match in _particular.finditer(text)}
    return frozenset(named | set(_calendar.findall(text.lower()))) - {""}


CANDIDATES = 8


class NearMemory(msgspec.Struct, frozen=True):
    memory: Memory
    nearness: float | None = None


def near(engine: Engine, text: str) -> tuple[NearMemory, ...]:
    """Return memories near a text, likeliest first, with sensitive ones unmasked."""
    query = text.replace('"', " ")[:MAX_QUERY_CHARACTERS]
    found: dict[str, float | None] = {}
    background = engine.embedding.background_now()
    if query.strip():
        answer, _ = recall_with_decision(
            engine,
            Recall(query=query, limit=CANDIDATES, collapse=False, expand=False, rerank="off"),
        )
        for hit in answer.hits:
            dense = hit.why.legs.get(DENSE)
            found[hit.id] = (
                background.nearness(dense.score) if dense and dense.rank is not None else None
            )
    for id in engine.store.lexical.similar("", fingerprint(text), CANDIDATES, engine.viewer):
        found.setdefault(id, None)
    memories = engine.store.memories.get_many(list(found))
    return tuple(
        NearMemory(memories[id], how_near)
        for id, how_near in found.items()
        if id in memories and memories[id].state in ("active", "archived")
    )
