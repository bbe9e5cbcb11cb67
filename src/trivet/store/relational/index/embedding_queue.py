"""The queue of memories to embed, its fair order, and throttled counts.

A lease moves a job's due time into the future, so that it falls due again if its holder dies.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.memory_fields import as_json
from trivet.store.records import Backlog, EmbeddingJob, Model, Passage
from trivet.store.relational.changes import Changes
from trivet.store.relational.database import Connection, StoreDatabase, StorePart, WriteTransaction
from trivet.store.relational.index.lexical import encode_passage_terms


class WaitingJob(msgspec.Struct, frozen=True):
    """A waiting memory; `size`, its text's length, determines the cost."""

    key: int
    owner: str
    size: int


def order_fairly(waiting: Iterable[WaitingJob]) -> list[WaitingJob]:
    """Order by the owner's work up to and including each text, short texts first.

    Nobody waits for another user's whole import.
    """
    texts_of: defaultdict[str, list[WaitingJob]] = defaultdict(list)
    for job in sorted(waiting, key=lambda job: (job.size, job.key)):
        texts_of[job.owner].append(job)
    places: list[tuple[int, int, WaitingJob]] = []
    for texts in texts_of.values():
        work = 0
        for job in texts:
            work += job.size
            places.append((work, job.key, job))
    return [job for _, _, job in sorted(places, key=lambda place: place[:2])]


def select_jobs(
    ordered: Sequence[WaitingJob], limit: int, most_characters: int | None
) -> list[WaitingJob]:
    """Return the first jobs within the limits, and the oldest, which prevents starvation."""
    chosen: list[WaitingJob] = []
    left = most_characters
    for job in ordered[:limit]:
        if left is not None and chosen and job.size > left:
            break
        chosen.append(job)
        left = None if left is None else left - job.size
    oldest = min(ordered, key=lambda job: job.key, default=None)
    if oldest is None or oldest in chosen:
        return chosen
    return [*chosen[: limit - 1], oldest]


# Counting fewer takes less than a millisecond.
RECOUNT_MIN_ROWS = 10_000
# Cached for this many times as long as the count took.
RECOUNT_PAUSE_FACTOR = 50

T = TypeVar("T")


class ThrottledCount(Generic[T]):
    """Cached counts of many rows: every answer reports how much waits."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[Hashable, tuple[T, float]] = {}  # with its expiry

    def of(self, name: Hashable, count: Callable[[], T], rows: Callable[[T], int]) -> T:
        began = self._clock()
        known = self._known.get(name)
        if known is not None and began < known[1]:
            return known[0]
        counted, ended = count(), self._clock()
        if rows(counted) < RECOUNT_MIN_ROWS:
            self._known.pop(name, None)
        else:
            self._known[name] = counted, ended + RECOUNT_PAUSE_FACTOR * (ended - began)
        return counted


# Longer than every lease and retry: a job due later was written under a clock that ran ahead.
LONGEST_WAIT_SECONDS = 900.0
# Bounds how many jobs are read from each end of the queue, in a few milliseconds.
MAX_JOBS_CONSIDERED = 500

EMPTY_BACKLOG = Backlog(0, 0, None)

EmbeddedJob = tuple[EmbeddingJob, Sequence[Passage], NDArray[np.float32]]


class EmbeddingQueue(StorePart):
    file = "jobs"

    def __init__(self, database: StoreDatabase, changes: Changes) -> None:
        super().__init__(database)
        self._encode = database.encode_vector
        self._changes = changes
        self._backlog_counts: ThrottledCount[tuple[Backlog, int]] = ThrottledCount()
        # (model, change) at which no jobs waited, and at which neither jobs nor readings did.
        self._no_job_at: tuple[int, int] | None = None
        self._empty_backlog_at: tuple[int, int] | None = None

    def lease(
        self, model: Model, limit: int, seconds: float, most_characters: int | None = None
    ) -> tuple[EmbeddingJob, ...]:
        """Lease due jobs in fair order, up to `most_characters` in all."""
        due = self.seconds_until_due(model)
        if due is None or due > 0:  # without due work, avoid the write transaction
            return ()
        with self._database.take() as connection:
            connection.execute(
                self._sql["take_over"], {"model": model.model, "longest": LONGEST_WAIT_SECONDS}
            )
            ordered = order_fairly(self._due(connection, model, limit))
            chosen = select_jobs(ordered, limit, most_characters)
            # The others are next if another process took the first.
            keys = dict.fromkeys(one.key for one in (*chosen, *ordered))
            names = {"model": model.model, "keys": as_json(keys), "limit": len(chosen)}
            rows = connection.execute(self._sql["due"], names).fetchall()
            taken = {
                "model": model.model,
                "keys": as_json(row["memory"] for row in rows),
                "seconds": seconds,
            }
            connection.execute(self._sql["postpone"], taken)
        return tuple(
            EmbeddingJob(
                row["memory"],
                model.model,
                row["revision"],
                row["attempts"],
                row["title"],
                row["content"],
            )
            for row in rows
        )

    def _due(self, connection: Connection, model: Model, limit: int) -> set[WaitingJob]:
        most = max(limit, MAX_JOBS_CONSIDERED)
        found: set[WaitingJob] = set()
        for end in ("oldest_due", "newest_due"):
            rows = connection.execute(
                self._sql[end], {"model": model.model, "limit": most}
            ).fetchall()
            found.update(WaitingJob(row[0], row[1], row[2]) for row in rows)
            if len(rows) < most:  # the whole queue
                break
        return found

    def newest(self, model: Model, limit: int) -> Mapping[str, EmbeddingJob]:
        """Return the newest jobs by id without leasing them; every recall does."""
        # Before the queue, which may be newer.
        moment = (model.model, self._changes.last())
        if moment == self._no_job_at:
            return {}
        rows = self._rows("newest", model=model.model, limit=limit)
        if not rows:
            self._no_job_at = moment
        return {
            str(row["id"]): EmbeddingJob(
                row["memory"],
                model.model,
                row["revision"],
                row["attempts"],
                row["title"],
                row["content"],
            )
            for row in rows
        }

    def finish(self, done: Sequence[EmbeddedJob]) -> None:
        """Store the vectors, except of changed memories."""
        terms = {job.key: encode_passage_terms(job.content, passages) for job, passages, _ in done}
        with self._database.write() as connection:
            for model in {job.model for job, _, _ in done}:
                self._finish(
                    connection, model, [one for one in done if one[0].model == model], terms
                )

    def _finish(
        self,
        connection: WriteTransaction,
        model: int,
        done: Sequence[EmbeddedJob],
        terms: Mapping[int, Sequence[str]],
    ) -> None:
        wanted = as_json({"memory": job.key, "revision": job.revision} for job, _, _ in done)
        rows = connection.execute(self._sql["finish"], {"model": model, "rows": wanted}).fetchall()
        taken = {row[0] for row in rows}
        names = {"model": model, "keys": as_json(taken)}
        connection.execute(connection.sql("vectors")["delete_passages_of_model"], names)
        kept = [one for one in done if one[0].key in taken]
        connection.put_all(
            "vectors", "insert_passage", [row for one in kept for row in self._rows_of(one, terms)]
        )
        connection.note_change(*(job.key for job, _, _ in kept))

    def _rows_of(
        self, done: EmbeddedJob, terms: Mapping[int, Sequence[str]]
    ) -> Iterator[dict[str, object]]:
        job, passages, vectors = done
        for passage, vector, held in zip(
            passages, vectors.astype(np.float16), terms[job.key], strict=True
        ):
            span = {"ordinal": passage.ordinal, "start": passage.start, "stop": passage.stop}
            place = {"memory": job.key, "model": job.model, "terms": held}
            yield {**place, **span, "vector": self._encode(vector)}

    def fail(
        self, jobs: Sequence[EmbeddingJob], error: str, retry_after: Mapping[int, float]
    ) -> None:
        with self._database.take() as connection:
            for job in jobs:
                values = {
                    "memory": job.key,
                    "model": job.model,
                    "revision": job.revision,
                    "error": error,
                }
                connection.execute(self._sql["fail"], {**values, "seconds": retry_after[job.key]})

    def release(self, jobs: Sequence[EmbeddingJob]) -> None:
        with self._database.take() as connection:
            for job in jobs:
                connection.execute(
                    self._sql["release"], {"model": job.model, "keys": as_json([job.key])}
                )

    def backlog(self, model: Model) -> Backlog:
        row = self._row("pending", model=model.model)
        return Backlog(row[0], row[1], row[2])

    def has_more_than(self, model: Model, few: int) -> bool:
        """Return whether more than `few` wait, counting no further."""
        return int(self._row("counted_up_to", model=model.model, most=few + 1)[0]) > few

    def backlog_for_answer(self, model: Model) -> tuple[Backlog, int]:
        """Return the backlog and the waiting readings for an answer; large counts may be old."""
        # Before the queue, which may be newer.
        moment = (model.model, self._changes.last())
        if moment == self._empty_backlog_at:
            return EMPTY_BACKLOG, 0
        found = self._backlog_counts.of(
            model.model,
            lambda: self._backlog_with_readings(model),
            lambda both: both[0].waiting + both[1],
        )
        if found == (EMPTY_BACKLOG, 0):
            self._empty_backlog_at = moment
        return found

    def _backlog_with_readings(self, model: Model) -> tuple[Backlog, int]:
        row = self._row("pending_with_readings", model=model.model)
        return Backlog(row[0], row[1], row[2]), int(row[3])

    def retry_now(self) -> None:
        with self._database.take() as connection:
            connection.execute(self._sql["retry_now"])

    def seconds_until_due(self, model: Model) -> float | None:
        first, last = self._row("next_due", model=model.model)
        return (
            None
            if first is None
            else 0.0
            if last > LONGEST_WAIT_SECONDS
            else max(0.0, float(first))
        )
