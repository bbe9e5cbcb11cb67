"""Faults, one per file.

Each file's first line describes the fault in the report. It declares the stores it works on and its
rounds in a whole campaign. `inject` runs it once: writers work, they or what they depend on are
hurt, and no writer is left at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

import msgspec

from soak.world import World

# What a round counts besides the writers' acts: kills, stops, requests.
Counts = Mapping[str, int]
NAMES = (
    "kill_writers",
    "kill_server",
    "kill_resident",
    "kill_postgres",
    "disk_full",
    "io_errors",
    "clock_jumps",
    "stopped",
    "lying_endpoints",
    "half_open_sockets",
    "many_clients",
)


class Injector(msgspec.Struct, frozen=True):
    name: str
    about: str
    stores: tuple[str, ...]
    rounds: int
    inject: Callable[[World], Counts]


def injectors() -> dict[str, Injector]:
    found = {}
    for name in NAMES:
        module = import_module(f"soak.injectors.{name}")
        about = (module.__doc__ or "").partition("\n")[0]
        found[name] = Injector(name, about, module.STORES, module.ROUNDS, module.inject)
    return found
