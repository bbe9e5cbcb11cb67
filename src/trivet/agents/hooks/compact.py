"""Before a conversation is cut short: what it has been shown is about to go out of sight.

No agent's program takes text at this moment; what must survive is told again at the start that follows the cut.
"""

from __future__ import annotations

from trivet.agents.hooks.event import Event
from trivet.agents.hooks.shown_memories import Seen
from trivet.serve.resident.hook_calls import HookCall
from trivet.trivet import Trivet


def before_compaction(memory: Trivet, call: HookCall, event: Event) -> bytes:
    Seen(call.environment, event.session).compact()
    return b""
