"""An embedder hangs or answers garbage: another width, no numbers, a web page, half a body."""

from __future__ import annotations

from soak.injectors import Counts
from soak.lying_embedder import MANNERS
from soak.world import World

STORES = ("sqlite", "postgres")
ROUNDS = 60
WRITERS = 2
MOST_ACTS = 20


def inject(world: World) -> Counts:
    manners = world.random.sample(MANNERS, 3)
    recalls = 0
    with world.crew() as crew:
        crew.start(world.opening(), WRITERS, world.random)
        for manner in manners:
            world.embedder.be(manner)
            crew.wait(world.random.randint(5, MOST_ACTS))
            with world.open() as memory:
                memory.recall("what is there about anything")
                recalls += 1
        world.embedder.be("honest")
        crew.wait(world.random.randint(1, MOST_ACTS))
    return {"lies": len(manners), "recalls under a lie": recalls}
