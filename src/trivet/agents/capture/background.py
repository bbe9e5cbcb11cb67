"""The language model's part in a thread of its own: a hook never waits for it."""

from __future__ import annotations

import threading

from trivet.errors import TrivetError
from trivet.memory.transcript_progress import forget_problem, note_problem
from trivet.trivet import Trivet

_at_work = threading.Lock()


def in_background(memory: Trivet) -> threading.Thread | None:
    """Reads and curates what waits; None where that is being done. What it could not do waits for the next turn."""
    if not _at_work.acquire(blocking=False):
        return None
    thread = threading.Thread(target=_work, args=(memory,), name="trivet-capture", daemon=True)
    thread.start()
    return thread


def _work(memory: Trivet) -> None:
    from trivet.agents.capture.curate import curate
    from trivet.agents.capture.reading import read_waiting

    try:
        problems = (*read_waiting(memory).problems, *curate(memory).problems)
        if problems:
            note_problem(problems[-1])
        else:
            forget_problem()
    except TrivetError as error:  # told by `doctor`; the store may have been closed meanwhile
        note_problem(str(error))
    finally:
        _at_work.release()
