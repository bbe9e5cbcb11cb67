"""A process stopped with SIGSTOP in the middle of its work, others waiting for it, and let go again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from soak.injectors import Counts
from soak.world import World

STORES = ("sqlite", "postgres")
ROUNDS = 60
WRITERS = 3
MOST_ACTS = 30
LONGEST_SECONDS = 1.5


def inject(world: World) -> Counts:
    victim = world.random.choice(("a writer", "the server"))
    with world.crew() as crew, world.server() as server:
        crew.start(world.opening(), WRITERS, world.random)
        crew.start(world.by_server(server), 1, world.random)
        for _ in range(3):
            crew.wait(world.random.randint(1, MOST_ACTS))
            pid = server.running.pid if victim == "the server" else world.random.choice(crew.pids)
            with _stopped(pid):
                time.sleep(world.random.uniform(0, LONGEST_SECONDS))
        crew.wait(world.random.randint(1, MOST_ACTS))
        crew.end()
    return {f"stops of {victim}": 3}


@contextmanager
def _stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
