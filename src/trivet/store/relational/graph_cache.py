"""The graph in memory: loaded on first need, then kept up with what changes, whichever process changed it."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable

import numpy as np

from trivet.errors import StoreError
from trivet.graph.network import Keys, Network, Pair
from trivet.memory_fields import as_json
from trivet.store.relational.changes import Changes
from trivet.store.relational.database import Database, Part, StoreDatabase
from trivet.store.relational.mapped_index import MOST_CHANGES

# A recall takes in this many changed memories itself, which takes some milliseconds; more are left to a thread.
TAKEN_IN_AT_ONCE = 500
# With so many nodes changed since the arrays were made, a thread makes them anew.
CHANGED_NODES = 50_000


class GraphCache(Part):
    file = "graph"

    _database: StoreDatabase

    def __init__(self, database: StoreDatabase, changes: Changes) -> None:
        super().__init__(database)
        self._changes = changes
        self._network: Network | None = None
        self._sequence = 0
        self._lock = threading.Lock()
        self._renewal: threading.Thread | None = None

    def fresh(self) -> Network:
        """Up to date but after a bulk change: then it is the network of before while a thread makes the new one."""
        with self._lock:
            at_once = TAKEN_IN_AT_ONCE
            if self._network is None:
                self._sequence, self._network = self._load(MOST_CHANGES)
                at_once = MOST_CHANGES
            changed = self._changes.since(self._sequence)
            if changed is None or len(changed) > at_once or self._network.changed > CHANGED_NODES:
                self._renew()
            elif changed:
                self._take_in({key for _, key in changed})
                self._sequence = changed[-1][0]
                if self._network.is_worn:
                    self._network = self._network.settled()
            return self._network

    @property
    def behind(self) -> bool:
        """Whether recalls walk the network of before a bulk change, since the new one is still being made."""
        with self._lock:
            return self._network is not None and self._sequence < self._changes.last()

    def wait(self) -> None:
        """Until the renewal under way, if any, is done."""
        renewal = self._renewal
        if renewal is not None:
            renewal.join()

    def _renew(self) -> None:
        if self._renewal is None or not self._renewal.is_alive():
            self._renewal = threading.Thread(target=self._replace, name="trivet-graph", daemon=True)
            self._renewal.start()

    def _replace(self) -> None:
        try:
            sequence, network = self._load()
        except StoreError:  # closed or in trouble: the next recall tries again, and till then it is `behind`
            return
        with self._lock:
            self._sequence, self._network = sequence, network

    def _load(self, most_behind: int = TAKEN_IN_AT_ONCE) -> tuple[int, Network]:
        mapped = self._database.mapped_index()
        if mapped is not None and self._behind(mapped.sequence) <= most_behind:
            return mapped.sequence, mapped.network()
        sequence = self._changes.last()  # before the rows: what is committed meanwhile is then taken in again
        return sequence, read_network(self._database)

    def _behind(self, sequence: int) -> float:
        changed = self._changes.since(sequence)
        return math.inf if changed is None else len(changed)

    def _take_in(self, keys: set[int]) -> None:
        assert self._network is not None
        rows = self._rows("mentions_of", keys=as_json(keys))
        links = self._rows("links_of", keys=as_json(keys))
        mentions: dict[int, list[tuple[int, int]]] = {key: [] for key in keys}
        for row in rows:
            mentions[row["memory"]].append((row["concept"], row["role"]))
        linked = _both_ways((row[0], row[1]) for row in links)
        nothing = np.zeros(0, np.int32)
        self._network.replace(
            {key: _pair(found) for key, found in mentions.items()}, {key: linked.get(key, nothing) for key in keys}
        )


def read_network(database: Database) -> Network:
    sql = database.sql("graph")
    packed = database.integers(sql["all_mentions"])
    with database.errors():
        links = database.read().execute(sql["all_links"]).fetchall()
    memories, concepts = (packed >> 30).astype(np.int32), ((packed >> 2) & 0xFFFFFFF).astype(np.int32)
    roles = (packed & 3).astype(np.uint8)
    return Network.of(memories, concepts, roles, _both_ways((row[0], row[1]) for row in links))


def _pair(found: list[tuple[int, int]]) -> Pair:
    return np.array([concept for concept, _ in found], np.int32), np.array([role for _, role in found], np.uint8)


def _both_ways(links: Iterable[tuple[int, int]]) -> dict[int, Keys]:
    linked: dict[int, set[int]] = {}
    for source, target in links:
        linked.setdefault(source, set()).add(target)
        linked.setdefault(target, set()).add(source)
    return {key: np.array(sorted(others), np.int32) for key, others in linked.items()}
