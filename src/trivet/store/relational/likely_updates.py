"""Which memory seems to update which: found out when they were written, and read by every recall.

Derived data: nothing is linked by it, and an edit of either memory drops it. A queue holds the memories that are not
yet compared with their neighbours. It has no leases: two processes that compare the same memory write the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trivet.memory_fields import as_json
from trivet.store.records import LikelyUpdate, Model, Uncompared
from trivet.store.relational.database import Part, WriteTransaction
from trivet.types import Memory


class LikelyUpdates(Part):
    file = "likely_updates"

    def waiting(self, model: Model | None, limit: int) -> tuple[Uncompared, ...]:
        """Memories to compare, the latest first; with a model, those that it has embedded."""
        rows = self._rows("waiting", model=model.model if model else None, limit=limit)
        return tuple(Uncompared(row["memory"], row["id"], row["revision"]) for row in rows)

    def pending(self) -> int:
        return int(self._row("pending")[0])

    def finish(self, memory: Memory, found: Iterable[tuple[Memory, Memory, float]]) -> None:
        """Stores what a comparison found, as (newer, older, probability), unless either has changed since."""
        with self._database.take() as connection:
            for newer, older, probability in found:
                values = {"newer": newer.id, "newer_revision": newer.revision}
                values |= {"older": older.id, "older_revision": older.revision, "probability": probability}
                connection.execute(self._sql["put"], values)
            connection.execute(self._sql["finish"], {"id": memory.id, "revision": memory.revision})

    def skip(self, uncompared: Uncompared) -> None:
        """There is nothing to compare it by."""
        with self._database.take() as connection:
            connection.execute(self._sql["finish"], {"id": uncompared.id, "revision": uncompared.revision})

    def of_older(self, ids: Sequence[str]) -> tuple[LikelyUpdate, ...]:
        """What seems to update these, as far as the viewer may read both."""
        rows = self._rows("touching", ids=as_json(ids), viewer=self._database.viewer) if ids else []
        return tuple(LikelyUpdate(*row) for row in rows)

    def compare_all(self) -> None:
        """Drops what is known and asks for everything anew."""
        with self._database.take() as connection:
            connection.execute(self._sql["clear_all"])
            connection.execute(self._sql["enqueue_all"])


def clear_likely_updates(connection: WriteTransaction, key: int) -> None:
    for name in ("clear", "cancel"):
        connection.execute(connection.sql(LikelyUpdates.file)[name], {"key": key})
