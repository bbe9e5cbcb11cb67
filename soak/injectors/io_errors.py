"""Reads, writes and syncs of the store's files fail at random with an I/O error."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from soak.injectors import Counts
from soak.world import Skipped, World

STORES = ("sqlite",)
ROUNDS = 40
WRITERS = 2
MOST_ACTS = 30
# Loaded before the C library.
SHIM = Path(__file__).with_suffix(".c")


def inject(world: World) -> Counts:
    shim = _compiled(world.folder)
    every = world.random.choice((20, 100, 500))
    with world.crew() as crew:
        for _ in range(WRITERS):
            seed = str(world.random.randrange(2**32))
            loaded = {"LD_PRELOAD": str(shim), "SOAK_IO_EVERY": str(every), "SOAK_IO_SEED": seed}
            crew.start(world.opening(), 1, world.random, loaded)
        crew.wait(world.random.randint(1, MOST_ACTS))
    return {"processes with a broken disk": WRITERS}


def _compiled(folder: Path) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        raise Skipped("there is no C compiler (cc)")
    library = folder / "io_errors.so"
    if not library.exists():
        subprocess.run(
            [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(SHIM), "-ldl"], check=True
        )
    return library
