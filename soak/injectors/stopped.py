"""SIGSTOP of a writer, the server, the resident process or a PostgreSQL backend, then SIGCONT."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from soak.injectors import Counts
from soak.injectors.kill_postgres import backend
from soak.world import World

STORES = ("sqlite", "postgres")
ROUNDS = 60
WRITERS = 3
MOST_ACTS = 30
STOPS = 3
LONGEST_SECONDS = 1.5


def inject(world: World) -> Counts:
    with world.crew() as crew, world.server() as server, ExitStack() as stack:
        crew.start(world.opening(), WRITERS, world.random)
        crew.start(world.by_server(server), 1, world.random)
        victims: dict[str, Callable[[], int]] = {
            "a writer": lambda: world.random.choice(crew.pids),
            "the server": lambda: server.running.pid,
        }
        if world.postgres is not None:
            database = world.postgres
            victims["a backend"] = lambda: backend(database)
        else:
            resident = stack.enter_context(world.resident())
            crew.start(world.by_resident(), 1, world.random)
            victims["the resident process"] = lambda: resident.pid
        chosen = [world.random.choice(sorted(victims)) for _ in range(STOPS)]
        for victim in chosen:
            crew.wait(world.random.randint(1, MOST_ACTS))
            with _stopped(victims[victim]()):
                time.sleep(world.random.uniform(0, LONGEST_SECONDS))
        crew.wait(world.random.randint(1, MOST_ACTS))
        crew.end()
    return {f"stops of {victim}": chosen.count(victim) for victim in chosen}


@contextmanager
def _stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
