"""SIGKILL of eight writers on one store, each in the middle of its work."""

from __future__ import annotations

from soak.injectors import Counts
from soak.world import World

STORES = ("sqlite",)
ROUNDS = 1_000
MOST_ACTS = 40


def inject(world: World) -> Counts:
    with world.crew() as crew:
        crew.start(world.opening(), world.writers, world.random)
        left = crew.pids
        while left:
            crew.wait(world.random.randint(1, MOST_ACTS))
            crew.kill([left.pop(world.random.randrange(len(left)))])
    return {"kills": world.writers}
