"""Puts a statement into the inbox, unless it is stored, waits or was rejected already. Secrets are masked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from trivet.clock import moment, now
from trivet.contract import InboxPropose
from trivet.errors import Conflict, InvalidInput, RerankerError
from trivet.ids import check_id, new_id
from trivet.memory.changes.verdict import Older, at_first_sight, change_model, verdicts
from trivet.memory.engine import Engine
from trivet.memory.inbox.similar import NearMemory, near, replaces, says_the_same
from trivet.memory.likeness import essence
from trivet.types import LOCAL, Memory, Proposal, Proposed

Known = Literal["stored already", "waits already", "rejected before"]

# Latest proposals in which the same statement in other words is searched; the same words are found among all.
LATEST = 300
_BECAME: dict[str, Known] = {
    "waiting": "waits already",
    "accepted": "stored already",
    "rejected": "rejected before",
}
LONGEST_TAG = 64
MASKED = "A secret in it was left out and not kept."


def propose(engine: Engine, request: InboxPropose) -> Proposed:
    """The same statement again adds nothing; one that would replace a memory names it."""
    check_category(engine, request.category)
    engine.guard.check_scope(request.scope or engine.settings.scope)
    content, redacted = engine.guard.masked(request.content)
    if not content.strip():
        raise InvalidInput("content: nothing is left of it without its private part. Nothing was proposed.")
    words = essence(content)
    known = engine.store.inbox.same(words) or _reworded(engine, content)
    if known is not None:
        return _known(known, redacted)
    near_by = near(engine, content)
    stored = next((one for one in near_by if says_the_same(content, one.memory.content, one.nearness)), None)
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
    return Proposed(status=_BECAME[known.state], id=known.id, same_as=known.stored, redacted=redacted)


def check_concerned(engine: Engine, proposal: Proposal) -> None:
    """An update or a supersession needs a living memory that the proposer may see."""
    if proposal.memory is not None:
        check_id(proposal.memory, "memory")  # also where it is not used: what is kept here is an id or nothing
    if proposal.action not in ("update", "supersede"):
        return
    if proposal.memory is None:
        raise InvalidInput(f"memory: to {proposal.action} needs the id of the memory it concerns. Nothing was changed.")
    if engine.store.memories.get(check_id(proposal.memory, "memory")).state == "deleted":
        raise Conflict(f"Memory {proposal.memory} was forgotten. Restore it, or set the action to add.")


def check_category(engine: Engine, category: str) -> None:
    known = engine.settings.categories
    if category not in known:
        raise InvalidInput(f"category: {engine.guard.without_secrets(category)!r} is not one of {', '.join(known)}.")


def _reworded(engine: Engine, content: str) -> Proposal | None:
    latest = engine.store.inbox.latest(LATEST)
    return next((one for one in latest if says_the_same(content, one.content)), None)


def _proposal(
    engine: Engine, request: InboxPropose, content: str, near_by: Sequence[NearMemory], masked: bool
) -> Proposal:
    tags = (engine.guard.masked(tag)[0] for tag in request.tags)
    proposal = Proposal(
        id=new_id(),
        content=content,
        kind=request.kind,
        reason=" ".join([engine.guard.masked(request.reason)[0], *([MASKED] if masked else [])]).strip(),
        action=request.action,
        memory=request.memory,
        category=request.category,
        tags=tuple(dict.fromkeys(tag[:LONGEST_TAG] for tag in tags)),
        scope=request.scope or engine.settings.scope,
        source=engine.guard.masked(request.source)[0] if request.source else None,
        created_at=moment(now()),
        owner=engine.viewer or LOCAL,
    )
    check_concerned(engine, proposal)
    if proposal.action != "add":
        return proposal
    found = _updated(engine, content, [one for one in near_by if _is_own(engine, one)])
    if found is None:
        return proposal
    old, why = found
    reason = " ".join([proposal.reason, f"It may update that memory: {why}."]).strip()
    return msgspec.structs.replace(proposal, action="supersede", memory=old.id, reason=reason)


def _updated(engine: Engine, content: str, near_by: Sequence[NearMemory]) -> tuple[Memory, str] | None:
    """The memory that the statement may update, and why: the one with most words in common, else the likeliest."""
    serving = engine.embedding.serving()
    identity = serving.identity if serving else None
    olds = [Older(one.memory.content, one.nearness) for one in near_by]
    try:
        compared = verdicts if engine.settings.changes == "read" else at_first_sight
        said = compared(content, olds, identity)
    except RerankerError as error:
        engine.worker.note(str(error))
        said = at_first_sight(content, olds, identity)
    judged = list(zip(near_by, said, strict=True))
    for one, verdict in judged:
        if replaces(content, one.memory.content):
            return one.memory, verdict.why
    likely = [(one, verdict) for one, verdict in judged if verdict.probability >= change_model().told]
    best = max(likely, key=lambda found: found[1].probability, default=None)
    return (best[0].memory, best[1].why) if best else None


def _is_own(engine: Engine, one: NearMemory) -> bool:
    """Only own memories, and no sensitive ones, are proposed to be replaced."""
    return one.memory.owner == (engine.viewer or LOCAL) and not one.memory.sensitive
