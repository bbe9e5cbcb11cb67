"""Thousands of histories, and planted faults: `python -m soak.syncing --help`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from soak.syncing.faults import FAULTS, planted
from soak.syncing.machines import memory_disk
from soak.syncing.manifest import manifest
from soak.syncing.shrink import shrunk
from soak.syncing.team import MIXES
from soak.syncing.world import World, make_team

# A planted fault that stays hidden in this many histories counts as missed.
FAULT_SEEDS = 150
SHOWN = 20
SAID_EVERY = 250
# Long and PostgreSQL histories have separate seeds.
LONG_FROM, POSTGRES_FROM = 10**6, 2 * 10**6


class Part(msgspec.Struct, frozen=True):
    name: str
    histories: int
    first_seed: int
    steps: int
    mix: str = ""


class Task(msgspec.Struct, frozen=True):
    part: str
    seed: int
    steps: int
    mix: str = ""


class Told(msgspec.Struct, frozen=True):
    task: Task
    seconds: float
    happened: dict[str, int]
    violation: str = ""


class Place(msgspec.Struct, frozen=True):
    """Template stores of histories, and a PostgreSQL server for those that want one."""

    folder: str
    templates: dict[str, str]
    postgres: str = ""


_place: list[Place] = []


def main() -> int:
    given, began = _given(), time.monotonic()
    with TemporaryDirectory(dir=memory_disk()) as folder:
        templates = {name: str(path) for name, path in make_team(Path(folder)).items()}
        postgres = _postgres() if given.postgres else None
        place = Place(folder, templates, postgres.database() if postgres else "")
        _begin(place)
        try:
            if given.shrink:
                return _shrink(Task("", given.first, given.steps, given.mix))
            told = _played(_parts(given), place, given.processes, given.minutes)
            parts = [
                _summary(part, [one for one in told if one.task.part == part.name])
                for part in _parts(given)
            ]
            result = {
                **manifest("soak.syncing"),
                "minutes": round((time.monotonic() - began) / 60),
                "histories": parts,
            }
            faults: dict[str, Any] = {}
            _write(given.out, {**result, "faults": faults})
            for name, seed in _faults(place, given.processes) if given.faults else ():
                faults[name] = seed
                _write(given.out, {**result, "faults": faults})
        finally:
            if postgres:
                postgres.stop()
                postgres.remove()
    missed = [name for name, seed in faults.items() if seed is None]
    for name in missed:
        print(f"not noticed: {name}")
    return 1 if missed or any(part["violated"] for part in parts) else 0


def _write(out: Path | None, result: dict[str, Any]) -> None:
    """Write partial results too: planted faults take long, and a run may be stopped."""
    if out:
        out.write_text(json.dumps(result, indent=1) + "\n")


def _given() -> Any:
    parser = argparse.ArgumentParser(prog="python -m soak.syncing", description=__doc__)
    parser.add_argument("histories", type=int, nargs="?", default=10_000, help="how many histories")
    parser.add_argument("first", type=int, nargs="?", default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=120, help="steps of a history")
    parser.add_argument(
        "--long", type=int, default=0, help="how many long histories, of their own seeds"
    )
    parser.add_argument("--long-steps", type=int, default=500, help="steps of a long one")
    parser.add_argument(
        "--postgres",
        type=int,
        default=0,
        help="how many with the server on PostgreSQL, of own seeds",
    )
    parser.add_argument(
        "--mix", choices=MIXES, default="", help="what people do; if none, each history draws it"
    )
    parser.add_argument(
        "--faults", action="store_true", help="also plant every fault, until a history shows it"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--minutes", type=float, help="begin no history after so long; the result says how many ran"
    )
    parser.add_argument(
        "--shrink",
        action="store_true",
        help="make the history of the first seed small, if it fails",
    )
    parser.add_argument("--out", type=Path, help="where the result is written")
    return parser.parse_args()


def _postgres() -> Any:
    from support.postgres_server import PostgresServer

    return PostgresServer()


def _parts(given: Any) -> list[Part]:
    parts = [
        Part("", given.histories, given.first, given.steps, given.mix),
        Part("long", given.long, given.first + LONG_FROM, given.long_steps, given.mix),
        Part("postgres", given.postgres, given.first + POSTGRES_FROM, given.steps, given.mix),
    ]
    return [part for part in parts if part.histories]


def _tasks(parts: Sequence[Part]) -> Iterator[Task]:
    """Mix the parts in proportion, so an early end leaves some of each."""
    every = [
        (
            (place + 0.5) / part.histories,
            Task(part.name, part.first_seed + place, part.steps, part.mix),
        )
        for part in parts
        for place in range(part.histories)
    ]
    return (task for _, task in sorted(every, key=lambda one: one[0]))


def _played(
    parts: Sequence[Part], place: Place, processes: int, minutes: float | None
) -> list[Told]:
    until = time.monotonic() + 60 * minutes if minutes is not None else float("inf")
    tasks, told = _tasks(parts), []
    with ProcessPoolExecutor(
        processes, initializer=_begin, initargs=(place,), max_tasks_per_child=None
    ) as pool:
        running: set[Future[Told]] = {
            pool.submit(_play, task) for task in islice(tasks, 2 * processes)
        }
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for one in done:
                told.append(one.result())
                if told[-1].violation:
                    print(told[-1].task.seed, told[-1].violation, flush=True)
                if len(told) % SAID_EVERY == 0:
                    print(f"{len(told)} histories played", file=sys.stderr, flush=True)
                if time.monotonic() < until:
                    running |= {pool.submit(_play, task) for task in islice(tasks, 1)}
    return told


def _begin(place: Place) -> None:
    _place[:] = [place]


def _world(task: Task, folder: str, kept: Sequence[int] | None = None) -> World:
    place = _place[0]
    server = None
    if task.part == "postgres":
        from soak.syncing.machines import PostgresMachine

        server = PostgresMachine(place.postgres, f"history{task.seed}")
    templates = {name: Path(path) for name, path in place.templates.items()}
    return World(
        task.seed, Path(folder), templates, task.steps if kept is None else kept, server, task.mix
    )


def _play(task: Task) -> Told:
    began = time.process_time()
    with TemporaryDirectory(dir=_place[0].folder) as folder:
        world = _world(task, folder)
        try:
            world.run()
            violation = ""
        except Exception as error:  # noqa: BLE001
            violation = f"{type(error).__name__} {error}"[:600]
    return Told(task, time.process_time() - began, dict(world.counts), violation)


def _summary(part: Part, told: Sequence[Told]) -> dict[str, Any]:
    happened = Counter[str]()
    for one in told:
        happened.update(one.happened)
    violated = sorted((one for one in told if one.violation), key=lambda one: one.task.seed)
    seconds = round(sum(one.seconds for one in told))
    print(
        f"{len(told)} {part.name} histories of {part.steps} steps from seed {part.first_seed}, "
        f"{seconds} s,"
        f" violations: {len(violated)}",
        flush=True,
    )
    return {
        "server": "PostgreSQL, never put back" if part.name == "postgres" else "SQLite",
        "histories": len(told),
        "first_seed": part.first_seed,
        "last_seed": max((one.task.seed for one in told), default=None),
        "steps": part.steps,
        "violations": [{"seed": one.task.seed, "said": one.violation} for one in violated[:SHOWN]],
        "violated": len(violated),
        "processor_seconds": seconds,
        "happened": dict(sorted(happened.items())),
    }


def _faults(place: Place, processes: int) -> Iterator[tuple[str, Any]]:
    with ProcessPoolExecutor(processes, initializer=_begin, initargs=(place,)) as pool:
        yield from zip(FAULTS, pool.map(_caught, FAULTS), strict=True)


def _caught(name: str, steps: int = 120, seeds: int = FAULT_SEEDS) -> dict[str, Any] | None:
    for seed in range(seeds):
        with TemporaryDirectory(dir=_place[0].folder) as folder:
            world = _world(Task("", seed, steps), folder)
            try:
                with planted(name, world):
                    world.run()
            except Exception as error:  # noqa: BLE001
                print(f"{name}: seed {seed}", flush=True)
                return {"seed": seed, "noticed": f"{type(error).__name__} {error}"[:200]}
    return None


def _shrink(task: Task) -> int:
    violated: list[str] = []

    def fails(kept: Sequence[int]) -> bool:
        with TemporaryDirectory(dir=_place[0].folder) as folder:
            try:
                _world(task, folder, kept).run()
            except Exception as error:  # noqa: BLE001
                said = f"{type(error).__name__} {error}"
                violated.append(said)
                print(len(kept), said[:200], flush=True)
                return _kind(said) == _kind(violated[0])
        return False

    if not fails(range(task.steps)):
        print(f"The history of seed {task.seed} does not fail.")
        return 0
    print(f"Enough to fail are the steps {shrunk(range(task.steps), fails)} of seed {task.seed}.")
    return 1


def _kind(violation: str) -> str:
    """Return the rule without the memory: a smaller history must break the same rule."""
    return " ".join(word for word in violation.split() if not any(map(str.isdigit, word)))


if __name__ == "__main__":
    sys.exit(main())
