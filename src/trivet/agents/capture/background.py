"""The language model's part of capture, in a thread of its own: a hook never waits for it."""

from __future__ import annotations

import threading

from trivet.agents.capture.curate import curate
from trivet.agents.capture.read import read_waiting
from trivet.errors import TrivetError
from trivet.memory.transcript_progress import forget_problem, note_problem
from trivet.trivet import Trivet

_running = threading.Lock()


def in_background(memory: Trivet) -> threading.Thread | None:
    """Starts a thread that reads what waits, then curates; None if one runs. What it cannot do waits for the next."""
    if not _running.acquire(blocking=False):
        return None
    thread = threading.Thread(target=_read_and_curate, args=(memory,), name="trivet-capture", daemon=True)
    thread.start()
    return thread


def _read_and_curate(memory: Trivet) -> None:
    try:
        problems = (*read_waiting(memory).problems, *curate(memory).problems)
        if problems:
            note_problem(problems[-1])
        else:
            forget_problem()
    except TrivetError as error:  # `doctor` shows it; the store may have been closed meanwhile
        note_problem(str(error))
    finally:
        _running.release()
