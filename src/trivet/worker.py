"""The worker: takes embedding jobs, cuts passages, embeds them, stores the vectors. Never on the caller's time."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from trivet.embedding import Embedding
from trivet.errors import EmbedderError, TrivetError
from trivet.passages import cut
from trivet.store.base import Job, Model, Passage, Store

if TYPE_CHECKING:
    from trivet.embed.base import Embedder

BATCH = 64
# Longer than any batch takes; if the process dies, another takes the jobs over after it.
LEASE_SECONDS = 120.0
FIRST_RETRY_SECONDS = 2.0
LONGEST_RETRY_SECONDS = 600.0
# How soon a background worker sees jobs that another process left.
POLL_SECONDS = 5.0

Progress = Callable[[int], None]


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
        """Embeds everything that is due and returns how many memories that was."""
        with self._draining:
            self._embedding.adopt()
            done = sum(self._drain_model(model, progress) for model in self._embedding.models())
            self._embedding.promote()
            return done

    def _drain_model(self, model: Model, progress: Progress | None) -> int:
        done = 0
        while not self._stop.is_set():
            jobs = self._store.jobs.lease(model, BATCH, LEASE_SECONDS)
            if not jobs:
                break
            if not self._embed(model, jobs):
                break  # the rest would fail alike; they are due again after their back-off
            done += len(jobs)
            if progress is not None:
                progress(len(jobs))
        return done

    def _embed(self, model: Model, jobs: Sequence[Job]) -> bool:
        try:
            embedder = self._embedding.embedder_of(model)
            passages = [cut(job.content, embedder.count_tokens, _room(job, embedder)) for job in jobs]
            texts = [_text(job, passage) for job, cuts in zip(jobs, passages, strict=True) for passage in cuts]
            vectors = embedder.embed_documents(texts)
        except EmbedderError as error:
            self.last_error = str(error)
            self._store.jobs.fail(jobs, str(error), {job.key: _retry_after(job.attempts) for job in jobs})
            return False
        done = []
        start = 0
        for job, cuts in zip(jobs, passages, strict=True):
            done.append((job, cuts, vectors[start : start + len(cuts)]))
            start += len(cuts)
        self._store.jobs.finish(done)
        self.last_error = None
        return True

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            try:
                self.drain()
            except TrivetError as error:  # shown in every answer's health; the jobs stay and are tried again
                self.last_error = str(error)
            self._wake.wait(POLL_SECONDS)


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
