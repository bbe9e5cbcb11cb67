"""From keys, which only this file knows, to ids, which everyone knows."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.store.relational.database import Database
from trivet.store.relational.rows import as_json

# About 100 bytes an entry.
IDS_KEPT = 200_000


class Identities:
    """Keys are never reused and never change their id, so what is known stays true until the memory is purged;
    a purged memory no longer passes any filter, so its key is not asked for. Only a database that lost its latest
    changes gives their keys again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._age = database.age
        self._known: dict[int, str] = {}

    def of(self, keys: Sequence[int]) -> dict[int, str]:
        if self._database.age != self._age:
            self._known, self._age = {}, self._database.age
        known = self._known
        missing = [key for key in keys if key not in known]
        if missing:
            with self._database.errors():
                rows = (
                    self._database.read()
                    .execute(self._database.sql("memories")["ids_of_keys"], {"keys": as_json(missing)})
                    .fetchall()
                )
            if len(known) > IDS_KEPT:
                known = self._known = {}
                return self.of(keys)
            known.update((row[0], row[1]) for row in rows)
        return {key: known[key] for key in keys if key in known}
