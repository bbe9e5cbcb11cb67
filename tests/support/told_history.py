"""A history of laptops and a server that a test tells by hand (soak/syncing)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from soak.syncing.machines import LaptopMachine, seeded
from soak.syncing.world import LEVEL, World


@contextmanager
def history(folder: Path, team: dict[str, Path]) -> Iterator[World]:
    """One that is told by hand, without faults of its own."""
    world = World(1, folder, team, 0)
    world.crashes = world.loss = world.twice = 0.0
    with seeded(world.random):
        yield world
    for machine in (world.server, *world.laptops):
        machine.trivet.close()


def level(world: World, laptop: LaptopMachine) -> None:
    """It pulls, and what it has to send waits."""
    for _ in range(LEVEL):
        world.exchange(laptop, most=0)


def clash(world: World, id: str) -> None:
    """Two laptops of one user edit a memory without knowing of each other; the second's lies beside."""
    first, second = world.laptops[:2]
    first.trivet.edit(id, content="first says")
    world.exchange(first)
    second.trivet.edit(id, content="second says")
    world.come_to_rest()
