"""Histories of laptops and a server that a test controls step by step (soak/syncing)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from soak.syncing.machines import LaptopMachine, seeded
from soak.syncing.world import LEVEL, World


@contextmanager
def history(folder: Path, team: dict[str, Path]) -> Iterator[World]:
    """Yield a world controlled by the test, without random faults."""
    world = World(1, folder, team, 0)
    world.crashes = world.loss = world.twice = 0.0
    with seeded(world.random):
        yield world
    for machine in (world.server, *world.laptops):
        machine.trivet.close()


def level(world: World, laptop: LaptopMachine) -> None:
    """Exchange until the laptop has pulled everything, with its own changes still unsent."""
    for _ in range(LEVEL):
        world.exchange(laptop, most=0)


def clash(world: World, id: str) -> None:
    """Edit one memory on two laptops of a user, so that the second edit becomes a conflict."""
    first, second = world.laptops[:2]
    first.trivet.edit(id, content="first says")
    world.exchange(first)
    second.trivet.edit(id, content="second says")
    world.come_to_rest()
