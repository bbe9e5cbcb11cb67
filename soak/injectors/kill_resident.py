"""The resident process killed with SIGKILL while programs of its user write through it."""

from __future__ import annotations

import os

import msgspec

from soak.injectors import Counts
from soak.world import World
from support.resident_home import end_resident, start_resident

STORES = ("sqlite",)
ROUNDS = 60
PROGRAMS = 3
MOST_ACTS = 40


def inject(world: World) -> Counts:
    settings = {"TRIVET_PATH": world.address, "TRIVET_EMBEDDER": world.model, "TRIVET_RESIDENT": "use"}
    opening = msgspec.structs.replace(
        world.opening(), resident=True, environment={**world.environment, "TRIVET_RESIDENT": "use"}
    )
    with world.crew() as crew:
        resident = start_resident({**os.environ, **settings})
        try:
            crew.start(opening, PROGRAMS, world.random)
            crew.wait(world.random.randint(1, MOST_ACTS))
        finally:
            end_resident(resident)
        crew.wait(world.random.randint(1, MOST_ACTS))
    return {"kills": 1}
