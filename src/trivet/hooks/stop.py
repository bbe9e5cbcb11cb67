"""When the agent has answered: the place to learn from what was said. `event.said` holds all the agent gave."""

from __future__ import annotations

from trivet.hooks.event import Event
from trivet.resident.hook_calls import HookCall
from trivet.trivet import Trivet


def after_answer(memory: Trivet, call: HookCall, event: Event) -> bytes:
    return b""
