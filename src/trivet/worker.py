"""The worker: takes embedding jobs, cuts passages, embeds them, stores the vectors. Never on the caller's time."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from trivet.embedding import Embedding
from trivet.errors import EmbedderError, TrivetError
from trivet.passages import cut
from trivet.store.base import Job, Model, Passage, Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trivet.embed.base import Embedder

BATCH = 64
# Longer than a batch may take; if the process dies, another takes the jobs over after it.
LOCAL_LEASE_SECONDS = 30.0
HOSTED_LEASE_SECONDS = 300.0
FIRST_RETRY_SECONDS = 2.0
LONGEST_RETRY_SECONDS = 600.0
# How soon a background worker sees jobs that another process left.
POLL_SECONDS = 5.0
# Then the embedder is taken to be down: the rest keep their lease and are tried later.
FAILURES_IN_A_ROW = 3

Progress = Callable[[int], None]
Embedded = tuple[Job, Sequence[Passage], "NDArray[np.float32]"]


class Worker:
    """Drains the queue on demand, or in a background thread that a write wakes."""

    def __init__(self, store: Store, embedding: Embedding) -> None:
        self._store = store
        self._embedding = embedding
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._draining = threading.Lock()
        self.last_error: str | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="trivet-worker", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            # A hosted embedder may hang until its own time limit; its jobs are safe, so do not wait for it.
            self._thread.join(timeout=None if self._embedding.local else 1.0)
            self._thread = None

    def drain(self, progress: Progress | None = None) -> int:
        """Embeds everything that is due and returns how many memories that was. `last_error` tells what went wrong."""
        with self._draining:
            try:
                self._embedding.adopt()
            except EmbedderError as error:  # no model, no jobs: everything waits until it can be adopted
                self.last_error = str(error)
                return 0
            done = sum(self._drain_model(model, progress) for model in self._embedding.models())
            self._embedding.promote()
            return done

    def _drain_model(self, model: Model, progress: Progress | None) -> int:
        done = failures = 0
        lease = LOCAL_LEASE_SECONDS if self._embedding.embedder_of(model).local else HOSTED_LEASE_SECONDS
        while not self._stop.is_set() and failures < FAILURES_IN_A_ROW:
            jobs = self._store.jobs.lease(model, BATCH, lease)
            if not jobs:
                break
            for batch in _batches(jobs):
                if failures < FAILURES_IN_A_ROW and self._embed(model, batch):
                    failures = 0
                    done += len(batch)
                    if progress is not None:
                        progress(len(batch))
                else:
                    failures += 1
        return done

    def _embed(self, model: Model, jobs: Sequence[Job]) -> bool:
        try:
            self._store.jobs.finish(self._embedded(model, jobs))
        except EmbedderError as error:
            self.last_error = str(error)
            self._store.jobs.fail(jobs, str(error), {job.key: _retry_after(job.attempts) for job in jobs})
            return False
        self.last_error = None
        return True

    def _embedded(self, model: Model, jobs: Sequence[Job]) -> list[Embedded]:
        embedder = self._embedding.embedder_of(model)
        passages = [cut(job.content, embedder.count_tokens, _room(job, embedder)) for job in jobs]
        texts = [_text(job, passage) for job, cuts in zip(jobs, passages, strict=True) for passage in cuts]
        vectors = embedder.embed_documents(texts)
        if vectors.shape[1] != model.dimension:
            raise EmbedderError(
                f"{model.identity} now makes vectors of {vectors.shape[1]} dimensions; the stored ones have "
                f"{model.dimension}. Name the model that made them, or run `trivet reindex --vectors`."
            )
        starts = accumulate((len(cuts) for cuts in passages), initial=0)
        return [
            (job, cuts, vectors[start : start + len(cuts)])
            for job, cuts, start in zip(jobs, passages, starts, strict=False)
        ]

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            try:
                self.drain()
            except TrivetError as error:  # shown in every answer's health; the jobs stay and are tried again
                self.last_error = str(error)
            self._wake.wait(POLL_SECONDS)


def _batches(jobs: Sequence[Job]) -> Iterator[Sequence[Job]]:
    """All first attempts together; what has failed before alone, so that one bad text does not hold up the others."""
    fresh = [job for job in jobs if not job.attempts]
    if fresh:
        yield fresh
    yield from ([job] for job in jobs if job.attempts)


def _room(job: Job, embedder: Embedder) -> int:
    window = embedder.window
    if not job.title:
        return window
    title = embedder.count_tokens([job.title])[0]
    return max(window // 2, window - title)


def _text(job: Job, passage: Passage) -> str:
    """What is embedded: the passage, under its memory's title."""
    text = job.content[passage.start : passage.stop]
    return f"{job.title}\n{text}" if job.title else text


def _retry_after(attempts: int) -> float:
    """Doubles from two seconds to ten minutes, with jitter so that many clients do not return at once."""
    seconds = min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0**attempts)
    return seconds * random.uniform(0.8, 1.2)
