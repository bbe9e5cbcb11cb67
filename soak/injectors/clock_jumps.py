"""The clock of every writer jumps back by days, forward by years, and to the right time again."""

from __future__ import annotations

import time
from pathlib import Path

from soak.injectors import Counts
from soak.world import Skipped, World

STORES = ("sqlite",)
ROUNDS = 20
WRITERS = 2
MOST_ACTS = 20
JUMPS = ("-400d", "-1h", "-3s", "+0", "+5s", "+2h", "+3y")
# libfaketime reads its file at most once in this many seconds.
CACHED_SECONDS = 1


def inject(world: World) -> Counts:
    library = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
    if library is None:
        raise Skipped("libfaketime is not installed (Debian: apt install faketime)")
    clock = world.folder / "clock"
    clock.write_text("+0")
    loaded = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_CACHE_DURATION": str(CACHED_SECONDS),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    jumps = world.random.sample(JUMPS, 3)
    with world.crew() as crew:
        crew.start(world.opening(), WRITERS, world.random, loaded)
        for jump in jumps:
            crew.wait(world.random.randint(1, MOST_ACTS))
            clock.write_text(jump)
            time.sleep(CACHED_SECONDS)
        crew.wait(world.random.randint(1, MOST_ACTS))
        crew.kill(crew.pids[:1])  # Including what it leased by the wrong clock.
    clock.unlink()
    return {"jumps": len(jumps), "kills": 1}
