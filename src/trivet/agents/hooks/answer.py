"""The table of hook moments, and the entry point without a resident process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from trivet.agents.hooks.context import at_start, before_prompt
from trivet.agents.hooks.event import Event, ShownMemories, event_of
from trivet.errors import InvalidInput, StoreError
from trivet.serve.resident import hook_client
from trivet.serve.resident.client import start_resident
from trivet.serve.resident.protocol import SUPPORTED, HookCall, hook_call
from trivet.trivet import Trivet

Handler = Callable[[Trivet, HookCall, Event], bytes]
HandlerWithoutStore = Callable[[HookCall, Event], bytes]


def answer(memory: Trivet, call: HookCall) -> bytes:
    """Return what the agent's program reads from the hook, usually nothing."""
    done = answer_without_store(call)
    return done if done is not None else MOMENTS[_moment(call)](memory, call, event_of(call.given))


def answer_without_store(call: HookCall) -> bytes | None:
    """Return the answer at a moment that needs no store."""
    handler = WITHOUT_STORE.get(_moment(call))
    return None if handler is None else handler(call, event_of(call.given))


def _moment(call: HookCall) -> str:
    name = ALSO_CALLED.get(call.moment, call.moment)
    if name not in MOMENTS and name not in WITHOUT_STORE:
        known = ", ".join((*MOMENTS, *WITHOUT_STORE, *ALSO_CALLED))
        raise InvalidInput(f"Unknown moment {call.moment!r}. Known moments: {known}.")
    return name


def after_answer(memory: Trivet, call: HookCall, event: Event) -> bytes:
    """Propose or store what the user said; a problem counts as a failed hook."""
    # Only this moment needs it; it loads the transcript readers.
    from trivet.agents.capture import learn

    captured = learn(memory, event.raw)
    if captured.problems:
        raise StoreError(captured.problems[-1])
    return b""


def before_compaction(call: HookCall, event: Event) -> bytes:
    """Record that a compaction removes shown memories from the model's context.

    Gemini CLI sends an automatic event before every turn.
    """
    if event.name == "PreCompress" and event.source == "auto":
        return b""
    ShownMemories(call.environment, event.session).compact()
    return b""


def at_end(call: HookCall, event: Event) -> bytes:
    """Keep the list of shown memories, unless the user cleared the session."""
    if event.source == "clear":
        ShownMemories(call.environment, event.session).forget()
    return b""


MOMENTS: Mapping[str, Handler] = {"start": at_start, "prompt": before_prompt, "stop": after_answer}
WITHOUT_STORE: Mapping[str, HandlerWithoutStore] = {"compact": before_compaction, "end": at_end}
ALSO_CALLED: Mapping[str, str] = {
    "session-start": "start",
    "pre-compact": "compact",
    "session-end": "end",
}


def main(arguments: Sequence[str]) -> int:
    given = sys.stdin.buffer.read()
    try:
        output = _answer(list(arguments), given)
    except Exception as error:  # noqa: BLE001 - a hook must not fail the agent
        if SUPPORTED:
            hook_client.log_failure(
                os.environb, list(arguments), f"{type(error).__name__}: {error}"
            )
        return 0
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()
    return 0


def _answer(arguments: list[str], given: bytes) -> bytes:
    call = hook_call(os.environ, Path.cwd(), arguments, given)
    # A session's end or compaction does not start a resident process.
    done = answer_without_store(call)
    if done is not None:
        return done
    if not SUPPORTED or call.settings.resident not in ("hooks", "always"):
        return _in_this_process(call)
    if not start_resident(call.settings):
        hook_client.log_failure(
            os.environb,
            arguments,
            "the resident process did not start; the hook worked without it",
        )
        return _in_this_process(call)
    try:
        return hook_client.hook(os.environb, arguments, given)
    except hook_client.ResidentUnavailable:
        return _in_this_process(call)


def _in_this_process(call: HookCall) -> bytes:
    with Trivet.open(settings=msgspec.structs.replace(call.settings, background=False)) as memory:
        return answer(memory, call)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
