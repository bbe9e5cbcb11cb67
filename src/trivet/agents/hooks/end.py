"""At a session's end. What it has been shown is kept, for it may be resumed, unless it was cleared."""

from __future__ import annotations

from trivet.agents.hooks.event import Event
from trivet.agents.hooks.shown_memories import Seen
from trivet.serve.resident.hook_calls import HookCall
from trivet.trivet import Trivet


def at_end(memory: Trivet, call: HookCall, event: Event) -> bytes:
    if event.source == "clear":
        Seen(call.environment, event.session).forget()
    return b""
