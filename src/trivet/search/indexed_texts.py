"""The terms of candidates' texts, as the index has held them since they were written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trivet.analyse import analyse
from trivet.store.records import IndexedText
from trivet.types import Memory

if TYPE_CHECKING:
    from trivet.store import Store


class IndexedTexts:
    """Of one recall, each read once.

    To analyse a text takes a thousand times as long as to look into its terms, and grows with its length: a chat of six
    thousand words takes as long as the query's embedding. So a recall analyses its query and nothing else.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, IndexedText] = {}

    def read(self, memories: Iterable[Memory]) -> None:
        """Those that are not known yet, in one go."""
        missing = [memory for memory in memories if memory.id not in self._known]
        if not missing:
            return
        found = self._store.memories.terms_of([memory.id for memory in missing])
        for memory in missing:
            self._known[memory.id] = found.get(memory.id) or _analysed(memory)

    def of(self, memory: Memory) -> IndexedText:
        self.read((memory,))
        return self._known[memory.id]


def _analysed(memory: Memory) -> IndexedText:
    """Of a memory that the index lacks, which `doctor` reports."""
    return IndexedText(" ".join(analyse(memory.content)), " ".join(analyse(memory.title or "")))
