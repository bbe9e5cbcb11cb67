"""Queries asked at the same time are embedded together: while one batch runs, those that arrive wait for the next.

Whoever is alone embeds at once and in its own thread. There is no thread of ours and no waiting for company.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from trivet.models.embed.base import Embedder, Vectors

# So that the first of a crowd does not wait for all of it.
MOST_AT_ONCE = 32


class _Asked:
    """One query, and once its batch has run, its vector; where the batch failed, it has to be asked alone."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.woken = threading.Event()
        self.leads = False
        self.vector: Vectors | None = None


class BatchedQueries:
    """The queries of one embedder, from any number of threads. `sizes` counts the batches by their size."""

    def __init__(self, embedder: Embedder, sizes: Counter[int] | None = None) -> None:
        self._embedder = embedder
        self._guard = threading.Lock()
        self._waiting: list[_Asked] = []
        self._running = False
        self.sizes: Counter[int] = Counter() if sizes is None else sizes

    def embed_query(self, text: str) -> Vectors:
        asked = _Asked(text)
        with self._guard:
            if self._running:
                self._waiting.append(asked)
            else:
                self._running = asked.leads = True
        if not asked.leads:
            asked.woken.wait()
        if asked.leads:
            return self._lead(asked)
        # Its neighbours must not be able to spoil it, nor it them: what failed together is tried apart.
        return asked.vector if asked.vector is not None else self._embedder.embed_query(text)

    def _lead(self, asked: _Asked) -> Vectors:
        """Runs the batch of those that wait by now, then hands the lead to the first that came meanwhile."""
        with self._guard:
            others = self._waiting[: MOST_AT_ONCE - 1]
            self._waiting = self._waiting[MOST_AT_ONCE - 1 :]
            self.sizes[1 + len(others)] += 1
        try:
            return self._together(asked, others) if others else self._embedder.embed_query(asked.text)
        finally:
            self._hand_over()
            for other in others:
                other.woken.set()

    def _together(self, asked: _Asked, others: list[_Asked]) -> Vectors:
        try:
            vectors = self._embedder.embed_queries([asked.text, *(other.text for other in others)])
        except Exception:  # noqa: BLE001 - each asks alone now, and hears what is wrong with its own text
            return self._embedder.embed_query(asked.text)
        for other, vector in zip(others, vectors[1:], strict=True):
            other.vector = vector
        first: Vectors = vectors[0]
        return first

    def _hand_over(self) -> None:
        with self._guard:
            if not self._waiting:
                self._running = False
                return
            following = self._waiting.pop(0)
            following.leads = True
        following.woken.set()


_known: WeakKeyDictionary[Embedder, BatchedQueries] = WeakKeyDictionary()
_knowing = threading.Lock()


def batched(embedder: Embedder) -> BatchedQueries:
    """The one that all who share this embedder share too."""
    with _knowing:
        found = _known.get(embedder)
        if found is None:
            found = _known[embedder] = BatchedQueries(embedder)
        return found


def start_anew(embedder: Embedder) -> None:
    """The batch under way hangs: queries that come from now on do not wait for it, and count on where it was."""
    with _knowing:
        hung = _known.get(embedder)
        if hung is not None:
            _known[embedder] = BatchedQueries(embedder, hung.sizes)


def batch_sizes() -> Counter[int]:
    """How many batches of each size this process has embedded."""
    total: Counter[int] = Counter()
    with _knowing:
        for queries in _known.values():
            total.update(dict(queries.sizes))  # a copy, since others count on
    return total
