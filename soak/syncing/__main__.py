"""Histories by the thousand, and the planted faults: `python -m soak.syncing --help`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from soak.syncing.faults import FAULTS, planted
from soak.syncing.machines import Machine
from soak.syncing.manifest import manifest
from soak.syncing.world import World, make_team

# A fault that so many histories do not show goes unnoticed.
FAULT_SEEDS = 150
SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak.syncing", description=__doc__)
    parser.add_argument("histories", type=int, nargs="?", default=10_000, help="how many histories")
    parser.add_argument("first", type=int, nargs="?", default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=120, help="steps of a history")
    parser.add_argument("--long", type=int, default=0, help="how many long histories, of their own seeds")
    parser.add_argument("--long-steps", type=int, default=500, help="steps of a long one")
    parser.add_argument("--postgres", type=int, default=0, help="how many with the server on PostgreSQL, of own seeds")
    parser.add_argument("--faults", action="store_true", help="also plant every fault, until a history shows it")
    parser.add_argument("--out", type=Path, help="where the result is written")
    given = parser.parse_args()
    memory_disk = Path("/dev/shm")
    with TemporaryDirectory(dir=memory_disk if memory_disk.is_dir() else None) as folder:
        templates = make_team(Path(folder))
        parts = [_histories(templates, Path(folder), given.histories, given.first, given.steps)]
        if given.long:
            parts.append(_histories(templates, Path(folder), given.long, given.first + 10**6, given.long_steps))
        if given.postgres:
            parts.append(_on_postgres(templates, Path(folder), given.postgres, given.first + 2 * 10**6, given.steps))
        faults = {name: _caught(name, templates, Path(folder)) for name in FAULTS} if given.faults else {}
    if given.out:
        given.out.write_text(
            json.dumps({**manifest("soak.syncing"), "histories": parts, "faults": faults}, indent=1) + "\n"
        )
    missed = [name for name, seed in faults.items() if seed is None]
    for name in missed:
        print(f"not noticed: {name}")
    return 1 if missed or any(part["violations"] for part in parts) else 0


def _on_postgres(templates: dict[str, Path], folder: Path, count: int, first: int, steps: int) -> dict[str, Any]:
    from soak.syncing.machines import PostgresMachine
    from support.postgres_server import PostgresServer

    server = PostgresServer()
    try:
        url = server.database()
        made = _histories(templates, folder, count, first, steps, lambda seed: PostgresMachine(url, f"history{seed}"))
    finally:
        server.stop()
        server.remove()
    return {**made, "server": "PostgreSQL, never put back"}


def _histories(
    templates: dict[str, Path],
    folder: Path,
    count: int,
    first: int,
    steps: int,
    server: Callable[[int], Machine] | None = None,
) -> dict[str, Any]:
    began, violations, counts = time.process_time(), [], Counter[str]()
    for seed in range(first, first + count):
        with TemporaryDirectory(dir=folder) as each:
            world = World(seed, Path(each), templates, steps, server(seed) if server else None)
            try:
                world.run()
            except Exception as error:  # noqa: BLE001 - whatever goes wrong is a violation
                violations.append({"seed": seed, "said": f"{type(error).__name__} {error}"[:600]})
                print(seed, violations[-1]["said"], flush=True)
            counts.update(world.counts)
    seconds = round(time.process_time() - began)
    print(
        f"{count} histories of {steps} steps from seed {first}, {seconds} s, violations: {len(violations)}", flush=True
    )
    return {
        "histories": count,
        "first_seed": first,
        "steps": steps,
        "violations": violations[:SHOWN],
        "violated": len(violations),
        "processor_seconds": seconds,
        "happened": dict(sorted(counts.items())),
    }


def _caught(name: str, templates: dict[str, Path], folder: Path) -> dict[str, Any] | None:
    """The first seed whose history shows the fault, and what was noticed."""
    for seed in range(FAULT_SEEDS):
        with TemporaryDirectory(dir=folder) as each:
            world = World(seed, Path(each), templates, 120)
            try:
                with planted(name, world):
                    world.run()
            except Exception as error:  # noqa: BLE001 - the fault may break anything
                print(f"{name}: seed {seed}", flush=True)
                return {"seed": seed, "noticed": f"{type(error).__name__} {error}"[:200]}
    return None


if __name__ == "__main__":
    sys.exit(main())
