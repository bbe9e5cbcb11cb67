"""The order of faults and stores, which the seed decides before anything runs."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import msgspec

from soak.injectors import Injector

# Rounds on one store before it is checked as a whole and replaced.
CHAPTER = 25
WHOLE = 1_000


class Chapter(msgspec.Struct, frozen=True):
    store: str
    rounds: tuple[str, ...]
    seed: int


def plan(chosen: Iterable[Injector], rounds: int, random: Random) -> list[Chapter]:
    """Plan `rounds` (1,000 for the whole campaign); each injector gets its share, at least one."""
    by_store: dict[str, list[str]] = {"sqlite": [], "postgres": []}
    for injector in chosen:
        for number in range(max(1, injector.rounds * rounds // WHOLE)):
            by_store[injector.stores[number % len(injector.stores)]].append(injector.name)
    chapters = []
    for store, names in by_store.items():
        random.shuffle(names)
        parts = [tuple(names[at : at + CHAPTER]) for at in range(0, len(names), CHAPTER)]
        chapters += [Chapter(store, part, random.randrange(2**32)) for part in parts]
    random.shuffle(chapters)
    return chapters
