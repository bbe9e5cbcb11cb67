"""Move tenants between four cells while they are used, and kill participants. Check at the end:

every acknowledged write is in the tenant's home, every tenant has one home, an old home took no
write after the switch, keys are valid everywhere, a syncing laptop is level, no tenant sees
another's data, doctor is clean.

`python -m soak.cells --rounds 40 --out docs/results/cells.json`
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from soak.cells.rounds import STAGES, Counts, Round
from soak.cells.world import CELLS, MOVING, STAYING, World, patiently
from soak.syncing.manifest import manifest
from trivet import Trivet
from trivet.sync import verbs

MOST_KILLS = 3


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m soak.cells", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="begin no further round after so long"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(given)
    result = {**manifest("soak.cells"), **campaign(options.rounds, options.seed, options.seconds)}
    print(json.dumps(result, indent=1))
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if result["violations"] else 0


def campaign(rounds: int, seed: int, seconds: float = math.inf) -> dict[str, Any]:
    began = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # Leave nothing running.
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        os.environ["TRIVET_CONFIG"] = f"{folder}/settings/trivet.toml"
        world = World(Path(folder), seed)
        counts = Counts()
        frozen: list[float] = []
        violations: list[str] = []
        try:
            done = 0
            while done < rounds and time.monotonic() - began < seconds:
                number, done = done, done + 1
                stage = STAGES[number % len(STAGES)]
                violations += Round(world, counts, frozen).run(
                    world.random.randint(1, MOST_KILLS), stage
                )
                _sync(world)
                print(
                    f"round {number + 1}: {dict(counts)} {violations}", file=sys.stderr, flush=True
                )
            world.ended.set()
            for writer in world.writers:
                writer.join()
            violations += _check(world)
            return {
                "rounds": done,
                "seed": seed,
                "seconds": round(time.monotonic() - began),
                "counts": dict(sorted(counts.items())),
                "frozen_ms": _spread(frozen),
                "writes": {name: _told(world, name) for name in world.home},
                "violations": violations,
            }
        finally:
            world.close()


def _sync(world: World) -> None:
    with world.open_laptop() as laptop:
        laptop.remember(f"The laptop writes at {time.monotonic_ns()}.")
        patiently(lambda: verbs.sync_now(laptop.engine))


def _check(world: World) -> list[str]:
    return [
        *_check_writes(world),
        *_check_servers(world),
        *_check_laptop(world),
        *_check_apart(world),
    ]


def _check_writes(world: World) -> list[str]:
    found = []
    for tenant, noted in world.noted.items():
        with Trivet.open(
            settings=world.settings(world.home[tenant], tenant=tenant, background=False)
        ) as trivet:
            lost = 0
            for id, words in noted.done.items():
                said = " ".join(str(one) for one in trivet.history(id))
                lost += sum(word not in said for word in words)
            trouble = [
                one.check
                for one in trivet.doctor()
                if not one.ok and one.check not in ("sync", "room on disk")
            ]
        found += [f"{tenant}: {lost} acknowledged writes are lost"] if lost else []
        found += [f"{tenant}: doctor: {trouble}"] if trouble else []
        if tenant in STAYING and any("moved" in reason for reason in noted.reasons):
            found.append(f"{tenant} did not move and still got a move error: {noted.reasons}")
    return found


def _check_servers(world: World) -> list[str]:
    found = []
    for tenant, key in world.keys.items():
        seen = set()
        for port in world.ports:
            with Trivet.open(f"http://127.0.0.1:{port}", key=key) as client:
                seen.add(sum(patiently(client.stats).memories.values()))
        if len(seen) != 1:
            found.append(f"{tenant} has different numbers of memories by server: {sorted(seen)}")
    return found


def _check_laptop(world: World) -> list[str]:
    with world.open_laptop() as laptop:
        for _ in range(4):
            patiently(lambda: verbs.sync_now(laptop.engine))
        return (
            []
            if verbs.verify(laptop.engine).level
            else [f"the laptop of {MOVING[0]} is not level with its server"]
        )


def _check_apart(world: World) -> list[str]:
    found = []
    for tenant in MOVING:
        others = [one for one in world.home if one != tenant]
        with psycopg.connect(world.urls[world.home[tenant]]) as connection:
            for other in others:
                connection.execute("SELECT set_config('trivet.tenant', %s, false)", (other,))
                row = connection.execute(
                    "SELECT count(*) FROM memory WHERE tenant = %s", (tenant,)
                ).fetchone()
                found += [f"{other} sees {tenant}"] if row != (0,) else []
    return found


def _told(world: World, tenant: str) -> dict[str, Any]:
    noted = world.noted[tenant]
    milliseconds = sorted(1000 * one for one in noted.seconds)
    p95 = milliseconds[int(0.95 * len(milliseconds))] if milliseconds else 0.0
    return {
        "moved": tenant in MOVING,
        "acknowledged": len(noted.seconds),
        "refused": noted.refused,
        "p50_ms": round(statistics.median(milliseconds), 1) if milliseconds else 0.0,
        "p95_ms": round(p95, 1),
        "reasons": dict(sorted(noted.reasons.items(), key=lambda one: -one[1])[:5]),
    }


def _spread(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(1000 * one for one in seconds)
    if not ordered:
        return {}
    return {
        "times": len(ordered),
        "median": round(statistics.median(ordered)),
        "most": round(ordered[-1]),
    }


if __name__ == "__main__":
    assert CELLS == 4
    sys.exit(main())
