"""The code indexes that the resident process has open: few at a time, closed when nobody asks for long."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

import msgspec

from trivet.errors import TrivetError

if TYPE_CHECKING:
    from trivet.code.code_index import CodeIndex
    from trivet.code.questions import Question
    from trivet.code.types import CodeAnswer

logger = logging.getLogger("trivet.serve.resident")

# A large repository takes up to 400 MB. Beyond so many, the one unused for longest is closed.
MOST_OPEN = 4
IDLE_SECONDS = 900.0
# The tree is looked at again before an answer if the last look is older. To look, rather than to wait for news from the
# system, works on every kind of disk, and costs about what `git status` does.
FRESH_SECONDS = 1.0


class _Open(msgspec.Struct):
    index: CodeIndex
    looked: float
    used: float
    users: int = 0


class CodeIndexes:
    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        self._opening: set[str] = set()
        self._lock = threading.Lock()

    @property
    def folders(self) -> tuple[str, ...]:
        return tuple(self._open)

    def answer(self, folder: str, question: Question) -> CodeAnswer | None:
        """None where the folder's index is not open, and the caller has to search itself."""
        from trivet.code.questions import answer

        with self._lock:
            one = self._open.get(folder)
            if one is None:
                return None
            one.users += 1
        try:
            if time.monotonic() - one.looked > FRESH_SECONDS:
                one.index.refresh()
                one.looked = time.monotonic()
            return answer(one.index, question)
        finally:
            with self._lock:
                one.users -= 1
                one.used = time.monotonic()

    def offer(self, folder: str, question: Question) -> CodeAnswer | None:
        """As `answer`; a folder whose index is not open is opened for the next time."""
        found = self.answer(folder, question)
        if found is None:
            self.open_soon(folder)
        return found

    def open_soon(self, folder: str) -> None:
        """Opens the index in a thread of its own, unless it is open: nobody waits for it."""
        with self._lock:
            if folder in self._open or folder in self._opening:
                return
            self._opening.add(folder)
        threading.Thread(target=self.open_now, args=(folder,), name="trivet-code", daemon=True).start()

    def close_idle(self, seconds: float = IDLE_SECONDS) -> None:
        """Those that nobody asked for so long, and those beyond the most."""
        with self._lock:
            idle = sorted((one.used, folder) for folder, one in self._open.items() if not one.users)
            beyond = len(self._open) - MOST_OPEN
            limit = time.monotonic() - seconds
            gone = [folder for place, (used, folder) in enumerate(idle) if place < beyond or used < limit]
            closing = [self._open.pop(folder) for folder in gone]
        for one in closing:
            one.index.close()

    def close(self) -> None:
        with self._lock:
            closing = list(self._open.values())
            self._open.clear()
        for one in closing:
            one.index.close()

    def open_now(self, folder: str) -> None:
        from trivet.code.code_index import CodeIndex

        try:
            index = CodeIndex.open(folder)
            index.refresh()
            moment = time.monotonic()
            with self._lock:
                self._open[folder] = _Open(index, moment, moment)
        except TrivetError as error:  # whoever asks does it themselves, and is told
            logger.warning("The code index of %s is not kept open: %s", folder, error)
        finally:
            with self._lock:
                self._opening.discard(folder)
        self.close_idle()
