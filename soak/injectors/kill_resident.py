"""SIGKILL of the resident process while programs write through it."""

from __future__ import annotations

from soak.injectors import Counts
from soak.world import World

STORES = ("sqlite",)
ROUNDS = 60
PROGRAMS = 3
MOST_ACTS = 40


def inject(world: World) -> Counts:
    with world.crew() as crew:
        with world.resident():
            crew.start(world.by_resident(), PROGRAMS, world.random)
            crew.wait(world.random.randint(1, MOST_ACTS))
        crew.wait(world.random.randint(1, MOST_ACTS))
    return {"kills": 1}
