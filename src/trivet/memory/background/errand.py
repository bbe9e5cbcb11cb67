"""Long work that somebody asked for and does not wait for: one piece at a time, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from trivet.errors import TrivetError

# Who closes the store waits so long for it. What is cut off then is undone by its transaction or goes on as jobs.
PATIENCE_SECONDS = 10.0

Name = TypeVar("Name")


class Errand(Generic[Name]):
    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell  # of what went wrong
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._doing: Name | None = None

    @property
    def doing(self) -> Name | None:
        """What is being done now."""
        return self._doing

    def start(self, name: Name, work: Callable[[], object]) -> bool:
        """False, and nothing is begun, while an earlier one is under way."""
        with self._lock:
            if self._doing is not None:
                return False
            self._doing = name
            self._thread = threading.Thread(target=self._do, args=(work,), name="trivet-errand", daemon=True)
            self._thread.start()
        return True

    def wait(self, seconds: float | None = None) -> None:
        """Until what was begun is done, if anything was."""
        if self._thread is not None:
            self._thread.join(timeout=seconds)

    def _do(self, work: Callable[[], object]) -> None:
        try:
            work()
        except TrivetError as error:
            self._tell(str(error))
        finally:
            self._doing = None
