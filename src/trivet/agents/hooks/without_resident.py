"""A hook where no resident process runs: starts one if the settings allow it, else opens the store itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from trivet.agents.hooks.answer import answer, answer_without_store
from trivet.serve.resident import hook_client
from trivet.serve.resident.connect import start
from trivet.serve.resident.hook_calls import HookCall, hook_call
from trivet.serve.resident.paths import SUPPORTED
from trivet.trivet import Trivet


def main(arguments: Sequence[str]) -> int:
    given = sys.stdin.buffer.read()
    try:
        output = _answer(list(arguments), given)
    except Exception as error:  # noqa: BLE001 - logged for `trivet status`; a failed hook must not disturb the agent
        if SUPPORTED:
            hook_client.note(os.environb, list(arguments), f"{type(error).__name__}: {error}")
        return 0
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()
    return 0


def _answer(arguments: list[str], given: bytes) -> bytes:
    call = hook_call(os.environ, Path.cwd(), arguments, given)
    done = answer_without_store(call)  # a session that ends or is shortened is no reason to start a process
    if done is not None:
        return done
    if not SUPPORTED or call.settings.resident not in ("hooks", "always"):
        return _in_this_process(call)
    if not start(call.settings):
        hook_client.note(os.environb, arguments, "the resident process did not come up; the hook worked without it")
        return _in_this_process(call)
    try:
        return hook_client.hook(os.environb, arguments, given)
    except hook_client.Gone:
        return _in_this_process(call)


def _in_this_process(call: HookCall) -> bytes:
    with Trivet.open(settings=msgspec.structs.replace(call.settings, background=False)) as memory:
        return answer(memory, call)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
