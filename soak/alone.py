"""Scenarios with their own stores and writers: flat memory, upgrades, and moves between cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

HALF_AN_HOUR = 1_800.0
SHORTEST_SECONDS = 30.0
# Each move is killed at one stage; the stages take turns.
MOVES, FEWEST_MOVES = 100, 5
# What a scenario found; `skipped` or `violations` tell that it did not pass.
Outcome = dict[str, Any]


def flat_memory(seed: int, share: float) -> Outcome:
    """Memory stays flat over half an hour of requests whose words and keys never repeat."""
    if find_spec("soak.flat_memory") is None:
        return {"skipped": "soak/flat_memory.py is not there"}
    seconds = max(SHORTEST_SECONDS, HALF_AN_HOUR * share)
    try:
        found = import_module("soak.flat_memory").main(seconds)
    except AssertionError as error:
        return {"seconds": seconds, "violations": [str(error)]}
    return {"seconds": seconds, "figures": found}


def upgrades(seed: int, share: float) -> Outcome:
    """Stores of each schema version migrate in killed processes; older code then opens them."""
    from soak import upgrades as scenario

    return scenario.main(seed, share)


def cells(seed: int, share: float) -> Outcome:
    """Tenants in use move between four PostgreSQL clusters; each move is killed once."""
    from soak.cells.__main__ import campaign

    return campaign(max(FEWEST_MOVES, round(MOVES * share)), seed)


SCENARIOS: Mapping[str, Callable[[int, float], Outcome]] = {
    "flat_memory": flat_memory,
    "upgrades": upgrades,
    "cells": cells,
}
