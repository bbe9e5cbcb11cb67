"""How much time passed between two looks at the clock, on a machine whose clock people and batteries set."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import msgspec

from trivet.clock import is_set, moment, now

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """`up` is for how long the machine has run, sleep included, since the start that `boot` names."""

    at: str = ""
    boot: str = ""
    up: float = 0.0


def look() -> Look:
    """Where the system does not tell for how long it has run, by the clock alone."""
    boot = "" if is_set() else _boot()
    return Look(at=now(), boot=boot, up=time.clock_gettime(time.CLOCK_BOOTTIME) if boot else 0.0)


def seconds_between(earlier: Look, later: Look) -> float:
    """Of a machine that was not restarted, whatever was done to its clock; else by the clock, and never below zero."""
    if earlier.boot and earlier.boot == later.boot:
        return max(0.0, later.up - earlier.up)
    return max(0.0, (moment(later.at) - moment(earlier.at)).total_seconds())


@cache
def _boot() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip() if hasattr(time, "CLOCK_BOOTTIME") else ""
    except OSError:  # not Linux: the clock must do
        return ""
