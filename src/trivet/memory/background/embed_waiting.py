"""Embeds what waits for one model. While a batch is embedded, the one before is stored and the next one is cut.

The model then never waits for the database: one thread embeds, and the worker's own does the rest.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec

from trivet.errors import EmbedderError
from trivet.memory.background.cut import Cut, cut_job
from trivet.memory.background.retry import batches, retry_after
from trivet.store.records import Job, Model, Passage
from trivet.types import Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trivet.breaker import Breaker
    from trivet.models.embed.base import Embedder
    from trivet.store import Store

# Memories leased at a time, and passages embedded and stored at a time: few, so that it stops and reports soon, and so
# that a short text is stored before a long one beside it is embedded.
LEASED = 64
PASSAGES_AT_ONCE = 32
# So much text at a time takes the bundled model about two seconds on one core; then whoever came meanwhile has a turn.
LOCAL_CHARACTERS = 16_384
# About two full requests to a hosted one.
HOSTED_CHARACTERS = 131_072
# Longer than a lease needs, also on a busy machine; if the process dies, another continues then.
LOCAL_LEASE_SECONDS = 180.0
HOSTED_LEASE_SECONDS = 300.0
FIRST_RETRY_SECONDS = 2.0
LONGEST_RETRY_SECONDS = 600.0
# After so many failures the embedder counts as down; the remaining jobs are tried later.
FAILURES_IN_A_ROW = 3

Batch = Sequence[Cut]
Embedded = tuple[Job, Sequence[Passage], "NDArray[np.float32]"]
VectorsOf = Callable[[Sequence[str]], "NDArray[np.float32]"]


class EmbedWaiting:
    """`tell` hears after each batch what went wrong, or None; `meanwhile` is called while a batch is embedded."""

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
        self._tell = tell
        self._progress = progress
        self._meanwhile = meanwhile
        self._breaker: Breaker | None = getattr(embedder, "breaker", None)
        self._ready: deque[Batch] = deque()
        self._begun: list[Batch] = []  # and neither stored yet nor put off
        self._failures = 0
        self._done = 0

    def try_again(self) -> None:
        """Has an endpoint asked that is left alone otherwise, since it did not answer lately."""
        if self._breaker:
            self._breaker.try_again()

    def drain(self) -> int:
        """Until nothing is due: how many memories were embedded."""
        try:
            under_way = self._begin(self._next())
            while under_way is not None:
                following = self._next()
                self._meanwhile()
                embedded, ended = self._awaited(under_way), under_way.batch
                under_way = self._begin(following)  # before anything is written, so that the model goes on at once
                if embedded is not None:
                    self._keep(ended, embedded)
                under_way = under_way or self._begin(self._next())  # what came meanwhile
        finally:  # also where something could not be stored: nobody else would take it up until its lease ends
            self._give_back([*self._begun, *self._ready])
        return self._done

    def _next(self) -> Batch | None:
        """Leased and cut. A few are held at a time, so that others have their turn."""
        if not self._goes_on():
            return None
        if not self._ready:
            local = self._embedder.local
            seconds, most = (
                (LOCAL_LEASE_SECONDS, LOCAL_CHARACTERS) if local else (HOSTED_LEASE_SECONDS, HOSTED_CHARACTERS)
            )
            jobs = self._store.jobs.lease(self._model, LEASED, seconds, most)
            self._ready.extend(_batches([cut_job(job, self._embedder) for job in jobs]))
        return self._ready.popleft() if self._ready else None

    def _begin(self, batch: Batch | None) -> _UnderWay | None:
        if batch is None or not self._goes_on():
            self._give_back([batch] if batch else [])
            return None
        self._begun.append(batch)
        return _UnderWay(batch, _beside(partial(_embedded, self._model, self._vectors_of, batch)))

    def _awaited(self, under_way: _UnderWay) -> list[Embedded] | None:
        """None where the embedder failed: then the jobs wait for their next attempt."""
        try:
            embedded = under_way.vectors.result()
        except EmbedderError as error:
            self._tell(str(error))
            self._failures += 1
            self._put_off([piece.job for piece in under_way.batch], str(error))
            self._begun.remove(under_way.batch)
            return None
        self._tell(None)
        self._failures = 0
        return embedded

    def _keep(self, batch: Batch, embedded: Sequence[Embedded]) -> None:
        self._store.jobs.finish(embedded)
        self._begun.remove(batch)
        self._done += len(batch)
        if self._progress is not None:
            self._progress(len(batch))

    def _put_off(self, jobs: Sequence[Job], error: str) -> None:
        seconds = {job.key: retry_after(job.attempts, FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS) for job in jobs}
        self._store.jobs.fail(jobs, error, seconds)

    def _give_back(self, unwanted: Iterable[Batch]) -> None:
        for batch in unwanted:
            self._store.jobs.release([piece.job for piece in batch])

    def _goes_on(self) -> bool:
        return not self._stop.is_set() and self._failures < FAILURES_IN_A_ROW and not self._rests()

    def _rests(self) -> bool:
        """Whether the endpoint is left alone for now: jobs then wait as they are, and no attempt is counted."""
        return self._breaker is not None and self._breaker.refusal() is not None


class _UnderWay(msgspec.Struct, frozen=True):
    """A batch, and its vectors that are on their way."""

    batch: Batch
    vectors: Future[list[Embedded]]


def _beside(work: Callable[[], list[Embedded]]) -> Future[list[Embedded]]:
    """Done in a thread of its own, which has the priority of this one and does not hold up the end of the process."""
    made: Future[list[Embedded]] = Future()

    def run() -> None:
        try:
            made.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits for the vectors
            made.set_exception(error)

    threading.Thread(target=run, name="trivet-vectors", daemon=True).start()
    return made


def _batches(pieces: Sequence[Cut]) -> Iterator[Batch]:
    return batches(pieces, lambda one: one.job.attempts, lambda one: len(one.passages), PASSAGES_AT_ONCE)


def _embedded(model: Model, vectors_of: VectorsOf, batch: Batch) -> list[Embedded]:
    vectors = vectors_of([text for piece in batch for text in piece.texts])
    if vectors.shape[1] != model.dimension:
        raise EmbedderError(
            f"{model.identity} now makes vectors of {vectors.shape[1]} dimensions; the stored ones have "
            f"{model.dimension}. Name the model that made them, or run `trivet reindex --vectors`."
        )
    starts = accumulate((len(piece.passages) for piece in batch), initial=0)
    return [
        (piece.job, piece.passages, vectors[start : start + len(piece.passages)])
        for piece, start in zip(batch, starts, strict=False)
    ]
