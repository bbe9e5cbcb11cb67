"""Asking the resident process how it is, and telling it to end."""

from __future__ import annotations

import os
import signal
import time
from typing import Literal

import msgspec

from trivet.decoding import known_type
from trivet.serve.resident.client import END
from trivet.serve.resident.connect import STATUS
from trivet.serve.resident.hook_client import Gone, ask
from trivet.serve.resident.paths import SUPPORTED, holder, socket_file
from trivet.serve.resident.server import END_SECONDS, Status

ANSWER_SECONDS = 1.0
# What it was asked is finished within its own limit; one that takes longer does not react.
PATIENCE_SECONDS = END_SECONDS + 5.0
LOOK_SECONDS = 0.02

Ended = Literal["ended", "killed"]


def asked_status() -> Status | None:
    """None: it does not run, or does not answer."""
    if not SUPPORTED:
        return None
    try:
        _, body, *_ = ask(os.environb, (STATUS,), ANSWER_SECONDS)
    except Gone:
        return None
    return msgspec.json.decode(body, type=known_type(Status))


def end_resident() -> Ended | None:
    """None: it did not run."""
    process = holder()
    if process is None:
        return None
    if _asked_to_end() and _gone(PATIENCE_SECONDS):
        return "ended"
    if holder() == process:  # still the same that does not react
        os.kill(process, signal.SIGKILL)
        _gone(PATIENCE_SECONDS)
        socket_file().unlink(missing_ok=True)
        return "killed"
    return "ended"


def _asked_to_end() -> bool:
    try:
        ask(os.environb, (END,), ANSWER_SECONDS)
    except Gone:
        return False
    return True


def _gone(seconds: float) -> bool:
    limit = time.monotonic() + seconds
    while holder() is not None:
        if time.monotonic() > limit:
            return False
        time.sleep(LOOK_SECONDS)
    return True
