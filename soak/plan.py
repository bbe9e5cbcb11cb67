"""Which faults come in which order on which store: chosen by the seed, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import msgspec

from soak.injectors import Injector

# Rounds on one store before all of it is looked through and the next store begins.
CHAPTER = 25
WHOLE = 1_000


class Chapter(msgspec.Struct, frozen=True):
    """The rounds on one store, by name."""

    store: str
    rounds: tuple[str, ...]
    seed: int


def plan(chosen: Iterable[Injector], rounds: int, random: Random) -> list[Chapter]:
    """`rounds` of a thousand are the whole campaign; with fewer each injector has its share, and one at the least."""
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
