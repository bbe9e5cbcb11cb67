"""The queue of memories to embed. A lease is a job moved into the future: if its holder dies, it falls due again.

Time is that of the database, so that all who share a server agree on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from trivet.memory_fields import as_json
from trivet.store.passage_terms import terms_of_passages
from trivet.store.records import Backlog, Job, Model, Passage
from trivet.store.relational.changes import Changes
from trivet.store.relational.database import Connection, Part, StoreDatabase, WriteTransaction
from trivet.store.relational.fair_order import Waiting, fair_order, shared_out
from trivet.store.relational.seldom_counted import SeldomCounted

# More than any lease or retry takes. Whatever is put off for longer was so under a clock that was ahead, and would wait
# for ever after it is set right.
LONGEST_WAIT_SECONDS = 900.0
# So many jobs at each end of the queue are looked at for the fair order: a few milliseconds.
LOOKED_AT = 500

NOTHING_WAITS = Backlog(0, 0, None)

Done = tuple[Job, Sequence[Passage], NDArray[np.float32]]


class Jobs(Part):
    file = "jobs"

    def __init__(self, database: StoreDatabase, changes: Changes) -> None:
        super().__init__(database)
        self._encode = database.encode_vector
        self._changes = changes
        self._told: SeldomCounted[tuple[Backlog, int]] = SeldomCounted()
        # Of which model, and after which change, no job was there, and none of the graph either.
        self._none_waited: tuple[int, int] | None = None
        self._nothing_waited: tuple[int, int] | None = None

    def lease(self, model: Model, limit: int, seconds: float, most_characters: int | None = None) -> tuple[Job, ...]:
        """Takes jobs that are due for so long, by turns between the owners of memories and short ones first.

        Beyond `most_characters` of text together no further job is taken.
        """
        due = self.seconds_until_due(model)
        if due is None or due > 0:  # nothing to do must not cost a write transaction
            return ()
        with self._database.take() as connection:
            connection.execute(self._sql["take_over"], {"model": model.model, "longest": LONGEST_WAIT_SECONDS})
            ordered = fair_order(self._due(connection, model, limit))
            chosen = shared_out(ordered, limit, most_characters)
            # The others stand behind: where another process has taken the first, these are next.
            keys = dict.fromkeys(one.key for one in (*chosen, *ordered))
            names = {"model": model.model, "keys": as_json(keys), "limit": len(chosen)}
            rows = connection.execute(self._sql["due"], names).fetchall()
            taken = {"model": model.model, "keys": as_json(row["memory"] for row in rows), "seconds": seconds}
            connection.execute(self._sql["postpone"], taken)
        return tuple(
            Job(row["memory"], model.model, row["revision"], row["attempts"], row["title"], row["content"])
            for row in rows
        )

    def _due(self, connection: Connection, model: Model, limit: int) -> set[Waiting]:
        """What waits, as far as it is looked at: of a long queue both ends, the oldest and what came last."""
        most = max(limit, LOOKED_AT)
        found: set[Waiting] = set()
        for end in ("oldest_due", "newest_due"):
            rows = connection.execute(self._sql[end], {"model": model.model, "limit": most}).fetchall()
            found.update(Waiting(row[0], row[1], row[2]) for row in rows)
            if len(rows) < most:  # that was all of it
                break
        return found

    def newest(self, model: Model, limit: int) -> Mapping[str, Job]:
        """The jobs of the memories written last, leased or not, by the memories' ids; nothing is leased by it.

        Every recall asks. Whatever needs a first vector was changed, so where none waited, none does until the next
        change.
        """
        moment = (model.model, self._changes.last())  # before the look, which may be of a later moment
        if moment == self._none_waited:
            return {}
        rows = self._rows("newest", model=model.model, limit=limit)
        if not rows:
            self._none_waited = moment
        return {
            str(row["id"]): Job(
                row["memory"], model.model, row["revision"], row["attempts"], row["title"], row["content"]
            )
            for row in rows
        }

    def finish(self, done: Sequence[Done]) -> None:
        """Stores the vectors, unless the memory has changed or gone since: then a newer job stands for it, or none."""
        terms = {job.key: terms_of_passages(job.content, passages) for job, passages, _ in done}
        with self._database.write() as connection:
            for model in {job.model for job, _, _ in done}:
                self._finish(connection, model, [one for one in done if one[0].model == model], terms)

    def _finish(
        self, connection: WriteTransaction, model: int, done: Sequence[Done], terms: Mapping[int, Sequence[str]]
    ) -> None:
        wanted = as_json({"memory": job.key, "revision": job.revision} for job, _, _ in done)
        rows = connection.execute(self._sql["finish"], {"model": model, "rows": wanted}).fetchall()
        taken = {row[0] for row in rows}
        names = {"model": model, "keys": as_json(taken)}
        connection.execute(connection.sql("vectors")["delete_passages_of_model"], names)
        kept = [one for one in done if one[0].key in taken]
        connection.put_all("vectors", "insert_passage", [row for one in kept for row in self._rows_of(one, terms)])
        connection.note_change(*(job.key for job, _, _ in kept))

    def _rows_of(self, done: Done, terms: Mapping[int, Sequence[str]]) -> Iterator[dict[str, object]]:
        job, passages, vectors = done
        for passage, vector, held in zip(passages, vectors.astype(np.float16), terms[job.key], strict=True):
            span = {"ordinal": passage.ordinal, "start": passage.start, "stop": passage.stop}
            place = {"memory": job.key, "model": job.model, "terms": held}
            yield {**place, **span, "vector": self._encode(vector)}

    def fail(self, jobs: Sequence[Job], error: str, retry_after: Mapping[int, float]) -> None:
        with self._database.take() as connection:
            for job in jobs:
                values = {"memory": job.key, "model": job.model, "revision": job.revision, "error": error}
                connection.execute(self._sql["fail"], {**values, "seconds": retry_after[job.key]})

    def release(self, jobs: Sequence[Job]) -> None:
        """Gives leased jobs back at once, so that another process need not wait for the lease to end."""
        with self._database.take() as connection:
            for job in jobs:
                connection.execute(self._sql["release"], {"model": job.model, "keys": as_json([job.key])})

    def backlog(self, model: Model) -> Backlog:
        row = self._row("pending", model=model.model)
        return Backlog(row[0], row[1], row[2])

    def waits_for_more_than(self, model: Model, few: int) -> bool:
        """Whether more memories than these few wait; asked by every save, however many they are."""
        return int(self._row("counted_up_to", model=model.model, most=few + 1)[0]) > few

    def told(self, model: Model) -> tuple[Backlog, int]:
        """What waits, and how many memories wait to be read by the rules, as every answer tells it: where it is a lot,
        as it was a moment ago. Where nothing waited, nothing does until the next change."""
        moment = (model.model, self._changes.last())  # before the look, which may be of a later moment
        if moment == self._nothing_waited:
            return NOTHING_WAITS, 0
        found = self._told.of(
            model.model, lambda: self._backlog_with_readings(model), lambda both: both[0].waiting + both[1]
        )
        if found == (NOTHING_WAITS, 0):
            self._nothing_waited = moment
        return found

    def _backlog_with_readings(self, model: Model) -> tuple[Backlog, int]:
        row = self._row("pending_with_readings", model=model.model)
        return Backlog(row[0], row[1], row[2]), int(row[3])

    def retry_now(self) -> None:
        with self._database.take() as connection:
            connection.execute(self._sql["retry_now"])

    def seconds_until_due(self, model: Model) -> float | None:
        first, last = self._row("next_due", model=model.model)
        return None if first is None else 0.0 if last > LONGEST_WAIT_SECONDS else max(0.0, float(first))
