"""The table of moments, by the names that hooks are installed with and those that people type."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trivet.agents.hooks.compact import before_compaction
from trivet.agents.hooks.end import at_end
from trivet.agents.hooks.event import Event, event_of
from trivet.agents.hooks.prompt import before_prompt
from trivet.agents.hooks.start import at_start
from trivet.agents.hooks.stop import after_answer
from trivet.errors import InvalidInput
from trivet.serve.resident.hook_calls import HookCall
from trivet.trivet import Trivet

Handler = Callable[[Trivet, HookCall, Event], bytes]

MOMENTS: Mapping[str, Handler] = {
    "start": at_start,
    "prompt": before_prompt,
    "stop": after_answer,
    "compact": before_compaction,
    "end": at_end,
}
ALSO_CALLED: Mapping[str, str] = {"session-start": "start", "pre-compact": "compact", "session-end": "end"}


def answer(memory: Trivet, call: HookCall) -> bytes:
    """What the agent's program is to read from the hook; mostly nothing."""
    handler = MOMENTS.get(ALSO_CALLED.get(call.moment, call.moment))
    if handler is None:
        raise InvalidInput(f"There is no moment {call.moment!r}. There are {', '.join((*MOMENTS, *ALSO_CALLED))}.")
    return handler(memory, call, event_of(call.given))
