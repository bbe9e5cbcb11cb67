"""SIGKILL of PostgreSQL (a backend or the whole server) or a client, while writers work."""

from __future__ import annotations

import os
import signal
import time

from soak.injectors import Counts
from soak.world import World
from support.postgres_server import PostgresServer

STORES = ("postgres",)
ROUNDS = 60
WRITERS = 3
MOST_ACTS = 40
# Until the last process of a killed server has released its memory.
PATIENCE_SECONDS = 30.0


def inject(world: World) -> Counts:
    server = world.postgres
    assert server is not None
    victim = world.random.choice(("a backend", "the server", "a client"))
    with world.crew() as crew:
        crew.start(world.opening(), WRITERS, world.random)
        crew.wait(world.random.randint(1, MOST_ACTS))
        if victim == "a client":
            crew.kill([world.random.choice(crew.pids)])
        elif victim == "a backend":
            os.kill(backend(server), signal.SIGKILL)
        else:
            os.kill(
                int((server.folder / "data" / "postmaster.pid").read_text().split()[0]),
                signal.SIGKILL,
            )
            _start(server)
        crew.wait(world.random.randint(1, MOST_ACTS))
    return {f"kills of {victim}": 1}


def backend(server: PostgresServer) -> int:
    with server.administrator() as connection:
        row = connection.execute(
            "SELECT max(pid) FROM pg_stat_activity WHERE usename = 'trivet'"
        ).fetchone()
    assert row is not None
    assert isinstance(row[0], int)
    return row[0]


def _start(server: PostgresServer) -> None:
    last = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            server.start()
        except AssertionError:
            if time.monotonic() > last:
                raise
            time.sleep(0.1)
        else:
            return
