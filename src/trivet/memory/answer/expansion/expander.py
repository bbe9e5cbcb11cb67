"""Who makes other questions out of one: a language model where the settings name one, else the rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from trivet.memory.answer.expansion.rules import parts_of

if TYPE_CHECKING:
    from trivet.memory.answer.expansion.rewrites import Rewriter

# Below this probability of its best hit an answer is unsure enough to ask again.
UNSURE = 0.5


class Asked(msgspec.Struct, frozen=True):
    """The other questions, and why the language model made none of them, if it should have."""

    queries: tuple[str, ...]
    failure: str | None = None


class Expander:
    def __init__(self, language_model: str, time_limit_ms: int) -> None:
        self._rewriter: Rewriter | None = None
        if language_model:
            from trivet.memory.answer.expansion.rewrites import Rewriter

            self._rewriter = Rewriter(language_model, time_limit_ms)

    def others(self, query: str, clean: Callable[[str], str]) -> Asked:
        """`clean` takes out of a text what must not leave this process."""
        if self._rewriter is None:
            return Asked(parts_of(query))
        from trivet.memory.answer.expansion.rewrites import NoRewrites

        try:
            return Asked(self._rewriter.rewrites(query, clean))
        except NoRewrites as error:
            return Asked(parts_of(query), str(error))
