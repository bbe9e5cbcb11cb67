"""Mapping between keys, which never leave the store, and ids, which callers use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from trivet.memory_fields import as_json
from trivet.store.relational.database import IdsByKey, StoreDatabase

# Each takes about 200 bytes.
MAX_CACHED_IDS = 200_000


def id_prefix_range(start: str) -> dict[str, str]:
    """Return the bounds of a prefix: "g" sorts after every character of an id."""
    return {"start": start, "stop": f"{start}g"}


class Ids:
    """A cache of ids and keys.

    Only a database that lost its latest changes reuses keys.
    """

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database
        self._known = _IdCache(database.generation)

    def of(self, keys: Sequence[int]) -> dict[int, str]:
        known = self._kept()
        missing = [key for key in keys if key not in known.ids]
        if missing and known.all is None:
            known.all = self._database.all_ids()
        if missing and known.all is not None:
            known.learn(
                [
                    (key, str(id, "ascii"))
                    for key in missing
                    if key < len(known.all) and (id := known.all[key])
                ]
            )
            missing = [key for key in missing if key not in known.ids]
        if missing:
            known.learn((row[0], row[1]) for row in self._read("ids_of_keys", keys=missing))
        return {key: known.ids[key] for key in keys if key in known.ids}

    def keys(self, ids: Sequence[str]) -> dict[str, int]:
        known = self._kept()
        missing = [id for id in ids if id not in known.keys]
        if missing:
            known.learn((row[1], row[0]) for row in self._read("keys_of_ids", ids=missing))
        return {id: known.keys[id] for id in ids if id in known.keys}

    def _kept(self) -> _IdCache:
        if (
            self._known.generation != self._database.generation
            or len(self._known.keys) > MAX_CACHED_IDS
        ):
            self._known = _IdCache(self._database.generation)
        return self._known

    def _read(self, name: str, **listed: Sequence[object]) -> list[Any]:
        values = {parameter: as_json(given) for parameter, given in listed.items()}
        with self._database.errors():
            return (
                self._database.read()
                .execute(self._database.sql("memories")[name], values)
                .fetchall()
            )


class _IdCache:
    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.all: IdsByKey | None = None
        # The latest key: a purged id may return under another.
        self.keys: dict[str, int] = {}
        self.ids: dict[int, str] = {}

    def learn(self, pairs: Iterable[tuple[int, str]]) -> None:
        for key, id in pairs:
            self.ids[key] = id
            self.keys[id] = max(key, self.keys.get(id, 0))
