"""Embedding the queued memories of one model, and retry helpers for queues."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

import msgspec

from trivet.errors import EmbedderError
from trivet.memory.passages import JobPassages, split_job
from trivet.store.records import EmbeddingJob, Model, Passage
from trivet.types import Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trivet.common.breaker import CircuitBreaker
    from trivet.models.embed.base import Embedder
    from trivet.store import Store


# Small, so that work stops and reports soon, and short texts do not wait for long ones.
LEASE_SIZE = 64
PASSAGES_AT_ONCE = 32
# About two seconds for the bundled model on one core.
LOCAL_CHARACTERS = 16_384
# About two full requests to a hosted model.
HOSTED_CHARACTERS = 131_072
# Longer than needed on a busy machine; another process continues after it.
LOCAL_LEASE_SECONDS = 180.0
HOSTED_LEASE_SECONDS = 300.0
FIRST_RETRY_SECONDS = 2.0
MAX_RETRY_SECONDS = 600.0
# After this many, the embedder counts as down, and other jobs are tried later.
FAILURES_IN_A_ROW = 3

Batch = Sequence[JobPassages]
Embedded = tuple[EmbeddingJob, Sequence[Passage], "NDArray[np.float32]"]
VectorsOf = Callable[[Sequence[str]], "NDArray[np.float32]"]


class PendingEmbedder:
    """A pipeline for one model's queue; `tell` gets each batch's error, or None."""

    def __init__(
        self,
        store: Store,
        model: Model,
        embedder: Embedder,
        vectors_of: VectorsOf,
        stop: threading.Event,
        tell: Callable[[str | None], None],
        progress: Progress | None = None,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        self._store = store
        self._model = model
        self._embedder = embedder
        self._vectors_of = vectors_of
        self._stop = stop
        self._report_error = tell
        self._progress = progress
        self._meanwhile = meanwhile
        self._breaker: CircuitBreaker | None = getattr(embedder, "breaker", None)
        self._ready: deque[Batch] = deque()
        self._in_flight: list[Batch] = []  # neither stored nor postponed yet
        self._failures = 0
        self._done = 0

    def try_again(self) -> None:
        """Ask an endpoint that is paused after failures."""
        if self._breaker:
            self._breaker.try_again()

    def drain(self) -> int:
        try:
            under_way = self._begin(self._next())
            while under_way is not None:
                following = self._next()
                self._meanwhile()
                embedded, ended = self._await_vectors(under_way), under_way.batch
                under_way = self._begin(following)  # before storing, so that the model never waits
                if embedded is not None:
                    self._store_batch(ended, embedded)
                under_way = under_way or self._begin(self._next())  # jobs queued meanwhile
        finally:  # even after an error, or other workers would wait until the leases end
            self._release_batches([*self._in_flight, *self._ready])
        return self._done

    def _next(self) -> Batch | None:
        """Lease few jobs at a time, to share with other workers."""
        if not self._should_continue():
            return None
        if not self._ready:
            local = self._embedder.local
            seconds, most = (
                (LOCAL_LEASE_SECONDS, LOCAL_CHARACTERS)
                if local
                else (HOSTED_LEASE_SECONDS, HOSTED_CHARACTERS)
            )
            jobs = self._store.jobs.lease(self._model, LEASE_SIZE, seconds, most)
            self._ready.extend(_batches([split_job(job, self._embedder) for job in jobs]))
        return self._ready.popleft() if self._ready else None

    def _begin(self, batch: Batch | None) -> _InFlight | None:
        if batch is None or not self._should_continue():
            self._release_batches([batch] if batch else [])
            return None
        self._in_flight.append(batch)
        return _InFlight(
            batch, _run_in_thread(partial(_embedded, self._model, self._vectors_of, batch))
        )

    def _await_vectors(self, under_way: _InFlight) -> list[Embedded] | None:
        try:
            embedded = under_way.vectors.result()
        except EmbedderError as error:
            self._report_error(str(error))
            self._failures += 1
            self._postpone([piece.job for piece in under_way.batch], str(error))
            self._in_flight.remove(under_way.batch)
            return None
        self._report_error(None)
        self._failures = 0
        return embedded

    def _store_batch(self, batch: Batch, embedded: Sequence[Embedded]) -> None:
        self._store.jobs.finish(embedded)
        self._in_flight.remove(batch)
        self._done += len(batch)
        if self._progress is not None:
            self._progress(len(batch))

    def _postpone(self, jobs: Sequence[EmbeddingJob], error: str) -> None:
        seconds = {
            job.key: retry_after(job.attempts, FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS)
            for job in jobs
        }
        self._store.jobs.fail(jobs, error, seconds)

    def _release_batches(self, unwanted: Iterable[Batch]) -> None:
        for batch in unwanted:
            self._store.jobs.release([piece.job for piece in batch])

    def _should_continue(self) -> bool:
        return (
            not self._stop.is_set() and self._failures < FAILURES_IN_A_ROW and not self._is_paused()
        )

    def _is_paused(self) -> bool:
        """Return whether the endpoint is paused; waiting then counts as no attempt."""
        return self._breaker is not None and self._breaker.refusal() is not None


class _InFlight(msgspec.Struct, frozen=True):
    batch: Batch
    vectors: Future[list[Embedded]]


def _run_in_thread(work: Callable[[], list[Embedded]]) -> Future[list[Embedded]]:
    """Use a daemon thread, which inherits the priority and does not delay exit."""
    made: Future[list[Embedded]] = Future()

    def run() -> None:
        try:
            made.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller
            made.set_exception(error)

    threading.Thread(target=run, name="trivet-vectors", daemon=True).start()
    return made


def _batches(pieces: Sequence[JobPassages]) -> Iterator[Batch]:
    return batches(
        pieces, lambda one: one.job.attempts, lambda one: len(one.passages), PASSAGES_AT_ONCE
    )


def _embedded(model: Model, vectors_of: VectorsOf, batch: Batch) -> list[Embedded]:
    vectors = vectors_of([text for piece in batch for text in piece.texts])
    if vectors.shape[1] != model.dimension:
        raise EmbedderError(
            f"{model.identity} now returns {vectors.shape[1]} dimensions, but the stored "
            "vectors have "
            f"{model.dimension}. Set the model that made them, or run `trivet reindex --vectors`."
        )
    starts = accumulate((len(piece.passages) for piece in batch), initial=0)
    return [
        (piece.job, piece.passages, vectors[start : start + len(piece.passages)])
        for piece, start in zip(batch, starts, strict=False)
    ]


Item = TypeVar("Item")
# By then every wait has its maximum; more doublings could overflow.
MAX_DOUBLINGS = 20


def retry_after(attempts: int, first: float, longest: float) -> float:
    """Return seconds to wait: doubling, with jitter to spread clients."""
    seconds = min(longest, first * 2.0 ** min(attempts, MAX_DOUBLINGS))
    return seconds * random.uniform(0.8, 1.2)


def batches(
    items: Sequence[Item], attempts: Callable[[Item], int], size: Callable[[Item], int], most: int
) -> Iterator[Sequence[Item]]:
    """Yield first attempts in batches, then each failed item alone."""
    batch: list[Item] = []
    total = 0
    for item in (item for item in items if not attempts(item)):
        if batch and total + size(item) > most:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size(item)
    if batch:
        yield batch
    yield from ([item] for item in items if attempts(item))
