"""When the agent has answered: what its user said that is worth keeping is proposed or stored; nobody is told."""

from __future__ import annotations

from trivet.agents.hooks.event import Event
from trivet.errors import StoreError
from trivet.serve.resident.hook_calls import HookCall
from trivet.trivet import Trivet


def after_answer(memory: Trivet, call: HookCall, event: Event) -> bytes:
    """What could not be learnt is a failure of the hook, and so counted; what could be is kept before that."""
    from trivet.agents.capture import learn  # only where something is to be learnt: it loads the readers of transcripts

    captured = learn(memory, event.said)
    if captured.problems:
        raise StoreError(captured.problems[-1])
    return b""
