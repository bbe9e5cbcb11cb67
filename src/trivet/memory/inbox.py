"""The inbox of proposals: an accepted update is a revision, a supersession a link."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from trivet.common.clock import stamp
from trivet.common.ids import check_id
from trivet.contract import (
    Edit,
    Forget,
    InboxAccept,
    InboxEdit,
    InboxList,
    InboxReject,
    InboxReopen,
    InboxShow,
    Remember,
    Restore,
)
from trivet.errors import Conflict, Forbidden, InvalidInput
from trivet.memory.engine import Engine
from trivet.memory.lifecycle import forget, restore
from trivet.memory.propose import LONGEST_TAG, check_category, check_target_memory
from trivet.memory.remember import edit as edit_memory
from trivet.memory.remember import join, remember_many
from trivet.memory.similarity import content_key
from trivet.types import LOCAL, Proposal, ProposalPage, Revision


def page(engine: Engine, request: InboxList) -> ProposalPage:
    return engine.store.inbox.page(request.state, request.limit, request.offset)


def show(engine: Engine, request: InboxShow) -> Proposal:
    return engine.store.inbox.get(check_id(request.id))


# Slightly below memories stored on purpose.
CONFIDENCE = 0.8


def accept(engine: Engine, request: InboxAccept) -> tuple[Proposal, ...]:
    """Accept all in one transaction, even proposals rejected before."""
    with engine.store.together():
        return tuple(
            _accept(engine, _own_proposal(engine, id)) for id in dict.fromkeys(request.ids)
        )


def reject(engine: Engine, request: InboxReject) -> tuple[Proposal, ...]:
    with engine.store.together():
        return tuple(
            _reject(engine, _own_proposal(engine, id)) for id in dict.fromkeys(request.ids)
        )


def reopen(engine: Engine, request: InboxReopen) -> tuple[Proposal, ...]:
    """Undo decisions in one transaction."""
    with engine.store.together():
        return tuple(
            _reopen(engine, _own_proposal(engine, id)) for id in dict.fromkeys(request.ids)
        )


def edit(engine: Engine, request: InboxEdit) -> Proposal:
    old = _own_proposal(engine, request.id)
    if old.state != "waiting":
        raise Conflict(f"Proposal {old.id} was already {old.state}. Nothing was changed.")
    given: dict[str, Any] = {
        name: value
        for name in ("content", "category", "tags", "action", "memory")
        if (value := getattr(request, name)) is not UNSET
    }
    if "content" in given:
        given["content"] = engine.guard.masked(given["content"])[0]
    if "tags" in given:
        given["tags"] = tuple(
            dict.fromkeys(engine.guard.masked(tag)[0][:LONGEST_TAG] for tag in given["tags"])
        )
    new = msgspec.structs.replace(old, **given)
    if not new.content.strip():
        raise InvalidInput(
            "content: nothing is left after its private part was removed. Nothing was changed."
        )
    check_category(engine, new.category)
    check_target_memory(engine, new)
    return engine.store.inbox.rewrite(new, content_key(new.content))


def _accept(engine: Engine, proposal: Proposal) -> Proposal:
    if proposal.state == "accepted":
        return proposal
    if proposal.action == "nothing":
        raise Conflict(
            f"Proposal {proposal.id} proposes to do nothing: {proposal.reason} Reject it, or "
            "give it another "
            f"action with `trivet inbox edit {proposal.id} --action add`. Nothing was accepted."
        )
    check_target_memory(engine, proposal)
    return engine.store.inbox.decide(proposal.id, "accepted", _store(engine, proposal))


def _store(engine: Engine, proposal: Proposal) -> str:
    if proposal.action == "update":
        assert proposal.memory is not None, "it was checked"
        return edit_memory(engine, Edit(id=proposal.memory, content=proposal.content)).id
    if proposal.stored is not None and proposal.stored != proposal.memory:
        return _store_again(engine, proposal, proposal.stored)
    superseded = (
        (proposal.memory,) if proposal.action == "supersede" and proposal.memory is not None else ()
    )
    request = Remember(
        id=proposal.id,
        content=proposal.content,
        category=proposal.category,
        tags=proposal.tags,
        scope=proposal.scope,
        source=proposal.source,
        confidence=CONFIDENCE,
        created_at=stamp(proposal.created_at),
        supersedes=superseded,
    )
    # `remember` would search again for what it may update.
    return remember_many(engine, [request])[0].id


def _store_again(engine: Engine, proposal: Proposal, stored: str) -> str:
    if engine.store.memories.get(stored).state == "deleted":
        restore(engine, Restore(id=stored))
    edit_memory(
        engine,
        Edit(id=stored, content=proposal.content, category=proposal.category, tags=proposal.tags),
    )
    if proposal.action == "supersede" and proposal.memory is not None:
        join(engine, stored, "supersedes", proposal.memory)
    return stored


def _reopen(engine: Engine, proposal: Proposal) -> Proposal:
    if proposal.state == "waiting":
        return proposal
    if proposal.state == "accepted" and proposal.stored is not None:
        _undo(engine, proposal, proposal.stored)
    return engine.store.inbox.reopen(proposal.id)


def _undo(engine: Engine, proposal: Proposal, stored: str) -> None:
    if proposal.action != "update":
        for link in engine.store.links.touching([stored]):
            if (link.source, link.kind, link.target) == (stored, "supersedes", proposal.memory):
                engine.store.links.remove(link.source, link.kind, link.target)
        forget(engine, Forget(id=stored))
        return
    revisions = engine.store.memories.revisions(stored)
    now, earlier = revisions[-1].memory, _previous_content(revisions, proposal.content)
    if now.state == "deleted" or now.content != proposal.content or earlier is None:
        raise Conflict(
            f"Memory {stored} was changed since proposal {proposal.id} updated it. Nothing "
            "was taken back. "
            f"`trivet history {stored}` lists its revisions; `trivet restore` brings one back."
        )
    edit_memory(engine, Edit(id=stored, content=earlier))


def _previous_content(revisions: tuple[Revision, ...], content: str) -> str | None:
    contents = (revision.memory.content for revision in reversed(revisions))
    return next((one for one in contents if one != content), None)


def _reject(engine: Engine, proposal: Proposal) -> Proposal:
    if proposal.state == "accepted":
        raise Conflict(
            f"Proposal {proposal.id} was accepted already, as memory {proposal.stored}. To "
            "remove it, run "
            f"`trivet forget {proposal.stored}`. Nothing was rejected."
        )
    if proposal.state == "rejected":
        return proposal
    # `stored` is kept for a later acceptance.
    return engine.store.inbox.decide(proposal.id, "rejected", proposal.stored)


def _own_proposal(engine: Engine, id: str) -> Proposal:
    proposal = engine.store.inbox.get(check_id(id))
    if proposal.owner != (engine.viewer or LOCAL):
        raise Forbidden(
            f"Proposal {id} belongs to {proposal.owner}, and only they can decide on it. "
            "Nothing was changed."
        )
    return proposal
