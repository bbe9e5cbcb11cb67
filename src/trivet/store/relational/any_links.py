"""Whether a store has links at all: where it has none, which is often, no answer need ask for them."""

from __future__ import annotations

from trivet.store.relational.changes import Changes
from trivet.store.relational.database import Database


class AnyLinks:
    def __init__(self, database: Database, changes: Changes) -> None:
        self._database = database
        self._changes = changes
        self._known: tuple[int, bool] | None = None  # as of which change

    def __call__(self) -> bool:
        """A link that is made or removed is a change of the memories at its ends."""
        last, known = self._changes.last(), self._known
        if known is None or self._changes.since(known[0]) != []:
            with self._database.errors():
                row = self._database.read().execute(self._database.sql("links")["any"]).fetchone()
            known = self._known = (last, bool(row[0]))
        return known[1]
