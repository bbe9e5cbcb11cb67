"""Comparing a memory with similar ones: on a single save, or later by the worker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from trivet.analyse import analyse_query
from trivet.errors import RerankerError
from trivet.memory.similarity import fingerprint
from trivet.memory.supersession.statement import CHARACTERS_READ
from trivet.memory.supersession.verdict import (
    MAX_READ,
    MAX_READ_SECONDS,
    OlderText,
    Verdict,
    change_model,
    judge_by_features,
    judge_updates,
)
from trivet.search.concurrency import RecallLoad
from trivet.search.embedding import Embedding
from trivet.search.recipe import DEFAULT
from trivet.secrets.masking import renumber_placeholders
from trivet.store.records import Model, PendingComparison
from trivet.types import LOCAL, Candidate, Filter, Memory

if TYPE_CHECKING:
    from trivet.store import Store

# What a fact replaces is among the nearest few.
NEAREST_COMPARED = 5
COMPARED_BY_WORDS = 3
# A new fact often names what it replaces ("MWAA was cancelled"). Of 300 written updates among 300
# other memories, 86 % are among the nearest, and 94 % with those that share rare words.
MAX_SHARING_WORDS = 3
RAREST_TERMS = 8
NEAREST_SEARCHED = 50
# Of 2,698 written updates, 5 % are less near than this, and 10 % less than .35.
MIN_NEARNESS = 0.3
MIN_STORED_PROBABILITY = 0.1
COMPARE_BATCH = 16
# Longer texts are not compared: facts that change are short.
MAX_COMPARED_CHARACTERS = 2_000
# Offset for the newer memory's secrets: each memory numbers its own from 1.
OTHER_SECRETS = 1_000
OTHER_SECRET = "another secret on the same matter"

Judged = tuple[Memory, Verdict]
ComparisonMethod = Literal["read", "words"]

# The reading model uses every core, so only one tenant of a process compares at a time.
_slot = threading.Lock()
STOP_POLL_SECONDS = 0.2
# Limited, so that a busy server also makes progress.
MAX_WAIT_FOR_CAPACITY = 10.0


def _acquire_slot(stop: threading.Event, load: RecallLoad) -> bool:
    while not stop.is_set():
        if _slot.acquire(timeout=STOP_POLL_SECONDS):
            load.wait_for_capacity(stop, MAX_WAIT_FOR_CAPACITY)
            return True
    return False


class UpdateComparison:
    """A comparison with similar memories.

    Per memory, the reading model gets `seconds` and reads `most` others; `trouble` has its error.
    """

    def __init__(
        self,
        store: Store,
        embedding: Embedding,
        how: ComparisonMethod = "read",
        seconds: float = MAX_READ_SECONDS,
        most: int = MAX_READ,
    ) -> None:
        self._store = store
        self._embedding = embedding
        self._how = how
        self._seconds = seconds
        self._most = most
        self.trouble: str | None = None

    def keep(
        self, memory: Memory, near: Sequence[Candidate], by_meaning: bool, done: bool = True
    ) -> list[Judged]:
        """Store likely updates in both directions, and return what `memory` may update.

        Without `done`, or with unread pairs, the worker compares again.
        """
        judged = list(self._judged(memory, near, by_meaning))
        left = self._most < MAX_READ and any(verdict.unread for _, _, verdict in judged)
        # Without reading, only clear updates are stored.
        least = MIN_STORED_PROBABILITY if self._how == "read" else change_model().report_from
        likely = [
            (newer, older, verdict.probability)
            for newer, older, verdict in judged
            if verdict.probability >= least
            and not (left and verdict.unread)  # the worker reads it and may reject it
            and newer.created_at > older.created_at  # memories of one batch have the same time
            and not newer.sensitive
            and not older.sensitive
        ]
        self._store.likely_updates.finish(memory, likely, done and not left)
        return [(older, verdict) for newer, older, verdict in judged if newer.id == memory.id]

    def drain(
        self,
        stop: threading.Event,
        most: int | None = None,
        load: RecallLoad | None = None,
        more_urgent: Callable[[], bool] = lambda: False,
    ) -> int:
        """Compare what waits, and return the number; `more_urgent` stops after any memory."""
        done, load = 0, load or RecallLoad()
        serving = self._embedding.serving()
        while not stop.is_set() and (most is None or done < most):
            waiting = self._store.likely_updates.waiting(serving, COMPARE_BATCH)
            for one in waiting:
                if not _acquire_slot(stop, load):
                    return done
                try:
                    self._compare(one)
                finally:
                    _slot.release()
                done += 1
                if more_urgent():
                    return done
            if len(waiting) < COMPARE_BATCH:
                break
        return done

    def _compare(self, one: PendingComparison) -> None:
        memory = self._store.memories.get_many([one.id]).get(one.id)
        if memory is None or memory.revision != one.revision or memory.state != "active":
            self._store.likely_updates.skip(one)
            return
        serving = self._embedding.serving()
        vector = self._store.vectors.of_memory(serving, one.key) if serving else None
        near: Sequence[Candidate] = ()
        if serving is not None and vector is not None:
            near = self._store.vectors.search(
                serving, vector, _visible_neighbours(memory), NEAREST_SEARCHED
            )
        self.keep(memory, near, by_meaning=bool(near))

    def _judged(
        self, memory: Memory, near: Sequence[Candidate], by_meaning: bool
    ) -> Iterator[tuple[Memory, Memory, Verdict]]:
        """Yield (newer, older, verdict); with `by_meaning`, `near` has cosines."""
        if len(memory.content) > MAX_COMPARED_CHARACTERS:
            return
        serving = self._embedding.serving()
        nearness = self._nearness(near, serving) if by_meaning and serving else {}
        identity = serving.identity if serving else None
        ids = [one.id for one in near if one.id != memory.id][:NEAREST_COMPARED]
        # New memories may have no vector yet.
        alike = self._store.lexical.similar(
            memory.id, fingerprint(memory.content), COMPARED_BY_WORDS, _viewer_of(memory)
        )
        sharing = self._sharing_words(memory) if by_meaning else []
        others = self._store.memories.get_many(
            list(dict.fromkeys([*ids, *alike, *sharing]))
        ).values()
        known_embedder = (identity or "").partition("/")[0] in change_model().unread.embedders
        older, newer = [], []
        for other in others:
            how_near = None if other.sensitive else nearness.get(other.id)
            far = known_embedder and how_near is not None and how_near < MIN_NEARNESS
            if far and other.id not in sharing:
                continue
            if is_comparable(memory, other):
                older.append((other, how_near))
            elif is_comparable(other, memory) and not far:
                newer.append((other, how_near))
        texts = [OlderText(other.content, how_near) for other, how_near in older]
        for (other, _), verdict in zip(
            older, self._verdicts(memory.content, texts, identity), strict=True
        ):
            yield memory, other, verdict
        for other, how_near in newer:
            [verdict] = self._verdicts(
                other.content, [OlderText(memory.content, how_near)], identity
            )
            yield other, memory, verdict

    def _sharing_words(self, memory: Memory) -> list[str]:
        terms = analyse_query(memory.content[:CHARACTERS_READ].replace('"', " ")).terms
        visible = _visible_neighbours(memory)
        holders = self._store.lexical.holders(terms, visible, DEFAULT.bm25)
        rarest = sorted(
            (term for term in terms if holders[term] > 1), key=lambda term: holders[term]
        )[:RAREST_TERMS]
        found = self._store.lexical.search(
            rarest, (), 0, visible, DEFAULT.bm25, MAX_SHARING_WORDS + 1
        )
        return [one.id for one in found if one.id != memory.id][:MAX_SHARING_WORDS]

    def _nearness(self, near: Sequence[Candidate], model: Model) -> dict[str, float]:
        background = self._embedding.background(model)
        return {one.id: background.nearness(one.score) for one in near}

    def _verdicts(self, new: str, olds: Sequence[OlderText], identity: str | None) -> list[Verdict]:
        read = renumber_placeholders(new, OTHER_SECRETS)
        found = self._read(read, olds, identity)
        return (
            found
            if read == new
            else [msgspec.structs.replace(one, why=OTHER_SECRET) for one in found]
        )

    def _read(self, new: str, olds: Sequence[OlderText], identity: str | None) -> list[Verdict]:
        if self._how == "words":
            return judge_by_features(new, olds, identity)
        try:
            return judge_updates(new, olds, identity, self._seconds, self._most)
        except RerankerError as error:
            self.trouble = str(error)
            return judge_by_features(new, olds, identity)


def _visible_neighbours(memory: Memory) -> Filter:
    return Filter(scope=memory.scope, states=("active",), viewer=_viewer_of(memory))


def _viewer_of(memory: Memory) -> str | None:
    return None if memory.owner == LOCAL else memory.owner


def is_comparable(new: Memory, old: Memory) -> bool:
    """Return whether `new` could update `old`; parts of one source do not."""
    same_source = (
        new.source is not None and old.source is not None and new.source.uri == old.source.uri
    )
    return (
        old.id != new.id
        and old.state == new.state == "active"
        and old.scope == new.scope
        and old.owner == new.owner
        and old.created_at <= new.created_at
        and not same_source
    )
