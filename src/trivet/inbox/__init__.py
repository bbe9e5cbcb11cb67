"""Proposals that wait for somebody's word before they become memories."""

from trivet.inbox.decide import accept, edit, reject
from trivet.inbox.propose import propose

__all__ = ["accept", "edit", "propose", "reject"]
