"""Helpers to fill a store's graph, inspect it, and compare it with a freshly built one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from support.stores import STORES, add
from trivet.graph.extract import extract
from trivet.graph.walk import WalkParameters
from trivet.store.records import ExtractionJob, WalkSeeds
from trivet.store.relational.store import RelationalStore as Store
from trivet.types import Filter, Memory

Four = tuple[Memory, Memory, Memory, Memory]

HOW = WalkParameters()
EVERYTHING = Filter(states=("active", "superseded", "archived"))
NAMES = ("acme", "berlin", "clara", "dresden", "emil", "acmecorp")


def read_all(store: Store) -> int:
    done = 0
    while readings := store.graph.lease("rules", 100, 60):
        finish(store, readings)
        done += len(readings)
    return done


def finish(store: Store, readings: Sequence[ExtractionJob]) -> None:
    store.graph.finish_mentions(
        [(one, extract(one.title, one.content, one.tags)) for one in readings]
    )


def held(store: Store, *names: str, filter: Filter = EVERYTHING) -> dict[str, int]:
    """Return how many memories mention each of the named concepts."""
    return {one.form: one.held for one in store.graph.named(names or NAMES, filter, HOW)}


def reached(store: Store, *starts: Memory, filter: Filter = EVERYTHING) -> dict[str, float]:
    seeds = WalkSeeds(memories={one.id: 1 / len(starts) for one in starts}, concepts={})
    return {one.id: one.score for one in store.graph.walk(seeds, filter, HOW, 100)}


def counts(store: Store) -> tuple[int, int]:
    stats = store.memories.stats()
    return stats.concepts, stats.mentions


def assert_as_if_new(store: Store, folder: Path) -> None:
    """Compare the graph with one built only from the current memories."""
    memories = list(store.memories.everything())
    new = STORES["sqlite"](folder)
    try:
        add(new, *memories)
        for link in store.links.everything():
            new.links.add(link)
        read_all(new)
        assert counts(store) == counts(new)
        assert held(store) == held(new)
        for one in memories:
            assert reached(store, one) == pytest.approx(reached(new, one))
        assert [finding.check for finding in store.upkeep.findings() if not finding.ok] == []
    finally:
        new.close()
