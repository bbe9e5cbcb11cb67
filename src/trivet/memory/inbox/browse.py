"""Looking at proposals: pages of them, and one by its id."""

from __future__ import annotations

from trivet.contract import InboxList, InboxShow
from trivet.ids import check_id
from trivet.memory.engine import Engine
from trivet.types import Proposal, ProposalPage


def page(engine: Engine, request: InboxList) -> ProposalPage:
    return engine.store.inbox.page(request.state, request.limit, request.offset)


def show(engine: Engine, request: InboxShow) -> Proposal:
    return engine.store.inbox.get(check_id(request.id))
