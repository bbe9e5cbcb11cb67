"""The disk is full at every write: one more page fits, then two, and so on."""

from __future__ import annotations

import os

from soak.injectors import Counts
from soak.world import DISK, Skipped, World

STORES = ("sqlite",)
ROUNDS = 60
WRITERS = 2
MOST_ACTS = 20
PAGE = 4096
# A write takes a few dozen pages: each of these ends it at another place.
MOST_PAGES = 40
# A writer may find room in the reused log; then no write is refused.
LONGEST_SECONDS = 2.0


def inject(world: World) -> Counts:
    if not world.small_disk:
        raise Skipped("mounting a small disk is not permitted here (it takes root)")
    rooms = sorted(world.random.sample(range(MOST_PAGES), 8))
    with world.crew() as crew:
        crew.start(world.opening(), WRITERS, world.random)
        crew.wait(world.random.randint(1, MOST_ACTS))
        try:
            for room in rooms:
                while not world.remount(str(_used(world) + room * PAGE)):
                    continue  # A writer was quicker.
                world.ledger.wait(1, LONGEST_SECONDS, "refused")
        finally:
            world.remount(DISK)
        crew.wait(world.random.randint(1, MOST_ACTS))
    return {"times the disk was full": len(rooms)}


def _used(world: World) -> int:
    room = os.statvfs(world.folder)
    return (room.f_blocks - room.f_bfree) * room.f_bsize
