"""From keys, which only this file knows, to ids, which everyone knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from trivet.store.relational.database import Database, Parameters, Row
from trivet.store.relational.rows import as_json

# About 200 bytes an entry.
IDS_KEPT = 200_000


class Identities:
    """Keys are never reused and never change their id, so what is known stays true until the memory is purged;
    a purged memory no longer passes any filter, so its key is not asked for. Only a database that lost its latest
    changes gives their keys again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known = _Known(database.age, {}, {})

    def of(self, keys: Sequence[int]) -> dict[int, str]:
        known = self._kept()
        missing = [key for key in keys if key not in known.ids]
        if missing:
            known.learn((row[0], row[1]) for row in self._read("ids_of_keys", {"keys": as_json(missing)}))
        return {key: known.ids[key] for key in keys if key in known.ids}

    def keys(self, ids: Sequence[str]) -> dict[str, int]:
        """Of ids that were found just now, which are known by then; others are looked up."""
        known = self._kept()
        missing = [id for id in ids if id not in known.keys]
        if missing:
            known.learn((row[1], row[0]) for row in self._read("keys_of_ids", {"ids": as_json(missing)}))
        return {id: known.keys[id] for id in ids if id in known.keys}

    def _kept(self) -> _Known:
        """Empty again where it grew too large, or the database is of another age. Who has it goes on with it."""
        if self._known.age != self._database.age or len(self._known.ids) > IDS_KEPT:
            self._known = _Known(self._database.age, {}, {})
        return self._known

    def _read(self, name: str, parameters: Parameters) -> list[Row]:
        with self._database.errors():
            return self._database.read().execute(self._database.sql("memories")[name], parameters).fetchall()


class _Known(msgspec.Struct, frozen=True):
    age: int
    ids: dict[int, str]
    keys: dict[str, int]  # the latest: an id that was purged may be stored again, under another key

    def learn(self, pairs: Iterable[tuple[int, str]]) -> None:
        for key, id in pairs:
            self.ids[key] = id
            self.keys[id] = key
