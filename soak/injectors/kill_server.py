"""SIGKILL of the server under its clients; it restarts on the same port."""

from __future__ import annotations

import signal

from soak.injectors import Counts
from soak.world import World

STORES = ("sqlite", "postgres")
ROUNDS = 60
CLIENTS = 4
MOST_ACTS = 60


def inject(world: World) -> Counts:
    with world.crew() as crew:
        with world.server() as server:
            port = int(server.address.rpartition(":")[2])
            crew.start(world.by_server(server), CLIENTS, world.random)
            crew.wait(world.random.randint(1, MOST_ACTS))
            server.signal(signal.SIGKILL)
            server.end()
        with world.server(port):
            crew.wait(world.random.randint(1, MOST_ACTS))
            crew.end()
    return {"kills": 1}
