"""Proposals that wait for their owner's decision before they become memories."""

from trivet.memory.inbox.decide import accept, edit, reject, reopen
from trivet.memory.inbox.propose import propose

__all__ = ["accept", "edit", "propose", "reject", "reopen"]
