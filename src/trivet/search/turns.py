"""Recalls of one process take turns, since Python runs one thread at a time anyway.

Where many compete, each loses the interpreter at every row that the database gives it, and gets it back only after the
others have had it: eight threads answered 33 requests a second, one of them 53 (docs/decisions/0008). Whoever waits
for somebody else, such as a hosted model, lets the next one go on meanwhile.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """So many have theirs at once; the others come in their order, those first that were interrupted."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._line: deque[threading.Lock] = deque()
        self._guard = threading.Lock()
        self._mine = threading.local()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Waits for it. Within one's own turn it is that one."""
        if self._has_turn():
            yield
            return
        self._take(first=False)
        try:
            yield
        finally:
            self._give_back()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While it lasts, another may have the turn of this thread, if it has one."""
        if not self._has_turn():
            yield
            return
        self._give_back()
        try:
            yield
        finally:
            self._take(first=True)

    def _has_turn(self) -> bool:
        return getattr(self._mine, "turn", False)

    def _take(self, first: bool) -> None:
        gate = self._in_line(first)
        if gate is not None:
            try:
                gate.acquire()  # until whoever has the turn opens it
            except BaseException:  # an interruption must not leave a turn to nobody
                self._leave(gate)
                raise
        self._mine.turn = True

    def _in_line(self, first: bool) -> threading.Lock | None:
        """A closed gate; None where a turn is free."""
        with self._guard:
            if self._free:
                self._free -= 1
                return None
            gate = threading.Lock()
            gate.acquire()
            if first:
                self._line.appendleft(gate)
            else:
                self._line.append(gate)
            return gate

    def _give_back(self) -> None:
        self._mine.turn = False
        self._pass_on()

    def _pass_on(self) -> None:
        with self._guard:
            if self._line:
                self._line.popleft().release()
            else:
                self._free += 1

    def _leave(self, gate: threading.Lock) -> None:
        with self._guard:
            if gate in self._line:
                self._line.remove(gate)
                return
        self._pass_on()  # it was opened just then
