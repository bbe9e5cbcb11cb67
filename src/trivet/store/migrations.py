"""The schema of a store as numbered SQL files, applied in order. `migrations/0001.sql` makes it, the others change it.

A file is one transaction together with the number that says it is done, and each store lets one process migrate at a
time. PostgreSQL builds indexes while others write, which no transaction allows: such a file says so in its first line,
and goes on where it was broken off.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

_OUTSIDE = "-- outside a transaction"


class Step(msgspec.Struct, frozen=True):
    number: int
    sql: str

    @property
    def in_transaction(self) -> bool:
        return not self.sql.startswith(_OUTSIDE)


def latest(folder: Path) -> int:
    """The version that the files of a store lead to: their numbers count from 1, without a gap."""
    return sum(name.endswith(".sql") for name in os.listdir(folder / "migrations"))  # noqa: PTH208  # at every start


def step(folder: Path, number: int) -> Step:
    return Step(number, (folder / "migrations" / f"{number:04}.sql").read_text(encoding="utf-8"))


def steps(folder: Path, version: int, to: int) -> list[Step]:
    """What leads from one version to a later one."""
    return [step(folder, number) for number in range(version + 1, to + 1)]
