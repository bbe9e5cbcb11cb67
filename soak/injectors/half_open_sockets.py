"""Connections to the server send half a request, or nothing, and stay; some are cut off."""

from __future__ import annotations

import socket
import struct
from contextlib import ExitStack

from acceptance.http.raw import Raw
from soak.injectors import Counts
from soak.world import World

STORES = ("sqlite", "postgres")
ROUNDS = 20
CLIENTS = 3
SOCKETS = 200
MOST_ACTS = 60
# Closing sends a reset.
RESET = struct.pack("ii", 1, 0)


def inject(world: World) -> Counts:
    key = world.key(
        "careless"
    )  # Not the clients' own key: concurrent requests per key are limited.
    with world.crew() as crew, world.server() as server, ExitStack() as stack:
        for number in range(SOCKETS):
            raw = stack.enter_context(Raw(server.address))
            if number % 3:
                raw.head(
                    "POST",
                    "/v1/memories",
                    key,
                    Content_Type="application/json",
                    Content_Length=1_000,
                )
            if number % 3 == 2:
                raw.socket.sendall(b'{"content": "half of')
            if number % 2:
                raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        crew.start(world.by_server(server), CLIENTS, world.random)
        crew.wait(world.random.randint(CLIENTS, MOST_ACTS))
        crew.end()
    return {"half-open sockets": SOCKETS}
