"""Thirty-two clients use one server for a minute."""

from __future__ import annotations

import time

from soak.injectors import Counts
from soak.world import World

STORES = ("sqlite", "postgres")
ROUNDS = 1
CLIENTS = 32


def inject(world: World) -> Counts:
    with world.crew() as crew, world.server() as server:
        crew.start(world.by_server(server), CLIENTS, world.random)
        time.sleep(world.seconds)
        crew.end()
    return {"clients": CLIENTS, "seconds": int(world.seconds)}
