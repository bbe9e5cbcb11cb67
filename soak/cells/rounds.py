"""Moves that are killed at a stage; some several times, some given up, some started twice."""

from __future__ import annotations

import subprocess
import time
from typing import Any

import psycopg

from soak.cells.world import MOVING, World, patiently
from trivet.store.postgres import Server
from trivet.store.postgres.tenant_move import forget_moved

STAGES = ("copying", "catching up", "frozen", "switched", "finishing")
# Shares of the rounds in which this is killed too, in addition to the mover.
SERVER, CLUSTER, RIVAL, GIVE_UP = 0.3, 0.2, 0.2, 0.3
MOST_ATTEMPTS = 40


class Counts(dict[str, int]):
    def __missing__(self, name: str) -> int:
        return 0


class Round:
    def __init__(self, world: World, counts: Counts, frozen: list[float]) -> None:
        self._world = world
        self._counts = counts
        self._frozen = frozen
        self._random = world.random

    def run(self, kills: int, stage: str) -> list[str]:
        """Move one tenant to another cell and return what does not hold afterwards."""
        world = self._world
        tenant = self._random.choice(MOVING)
        source = world.home[tenant]
        target = self._random.choice([place for place in range(len(world.urls)) if place != source])
        self._forget(tenant, target)
        for number in range(kills):
            self._kill_at(tenant, target, stage if number == 0 else self._random.choice(STAGES))
            self._kill_others(source, target)
        if self._random.random() < GIVE_UP and self._given_up(tenant, target):
            return self._check(tenant, source)
        if self._random.random() < RIVAL:
            self._rival(tenant, source, target)
        self._finish(tenant, target)
        world.home[tenant] = target
        self._counts["moves"] += 1
        return self._check(tenant, target) + self._check_old_copy(tenant, source, target)

    def _kill_at(self, tenant: str, target: int, stage: str) -> None:
        mover = self._world.mover(tenant, target)
        assert mover.stderr is not None
        frozen = 0.0
        for line in mover.stderr:
            if "trivet: frozen" in line:
                frozen = time.monotonic()
            elif "trivet: switched" in line:
                self._frozen.append(time.monotonic() - frozen)
            if f"trivet: {stage}" in line:
                time.sleep(self._random.choice((0.0, 0.0, self._random.uniform(0, 0.2))))
                break
        mover.kill()
        self._counts[
            f"kills at {stage}" if mover.wait() < 0 else f"ended before it was killed at {stage}"
        ] += 1

    def _kill_others(self, source: int, target: int) -> None:
        if self._random.random() < SERVER:
            self._world.kill_server(self._random.randrange(len(self._world.urls)))
            self._counts["kills of servers"] += 1
        if self._random.random() < CLUSTER:
            self._world.kill_cluster(self._random.choice((source, target)))
            self._counts["kills of clusters"] += 1

    def _given_up(self, tenant: str, target: int) -> bool:
        for _ in range(MOST_ATTEMPTS):
            status, told = _ended(self._world.mover(tenant, target, "--abandon"))
            if status == 0:
                self._counts["given up"] += 1
                return True
            if "move it back" in told:  # The switch was already done.
                return False
            time.sleep(0.2)
        raise AssertionError(f"the move of {tenant} cannot be given up: {told}")

    def _rival(self, tenant: str, source: int, target: int) -> None:
        """Start two moves to two cells: one must be refused, and nothing else may happen."""
        third = next(
            place for place in range(len(self._world.urls)) if place not in (source, target)
        )
        movers = [self._world.mover(tenant, target), self._world.mover(tenant, third)]
        for mover in movers:
            mover.kill() if self._random.random() < 0.3 else None
            _ended(mover)
        standing = self._world.standings(tenant)[source]
        if standing is not None and standing.move and standing.standing != "moved":
            wanted = target if standing.cell == _cell(self._world.urls[target]) else third
            if wanted == third:
                self._given_up(tenant, third)
        elif (
            standing is not None
            and standing.standing == "moved"
            and standing.cell != _cell(self._world.urls[target])
        ):
            self._finish(tenant, third)
            self._world.home[tenant] = third
            self._forget(tenant, target)
        self._counts["rivals"] += 1

    def _finish(self, tenant: str, target: int) -> None:
        told = ""
        for _ in range(MOST_ATTEMPTS):
            mover = self._world.mover(tenant, target)
            assert mover.stderr is not None
            frozen, lines = 0.0, []
            for line in mover.stderr:
                lines.append(line)
                if "trivet: frozen" in line:
                    frozen = time.monotonic()
                elif "trivet: switched" in line:
                    self._frozen.append(time.monotonic() - frozen)
            if mover.wait() == 0:
                return
            told = "".join(lines)
            time.sleep(0.2)
        raise AssertionError(f"{tenant} does not move: {told}")

    def _forget(self, tenant: str, target: int) -> None:
        standing = self._world.standings(tenant)[target]
        if standing is not None and standing.standing == "moved":
            old = Server(self._world.urls[target])
            there = next(url for url in self._world.urls if _cell(url) == standing.cell)
            new = Server(there)
            patiently(lambda: forget_moved(old, new, tenant))
            old.close()
            new.close()

    def _check(self, tenant: str, home: int) -> list[str]:
        standings = [one.standing if one else None for one in self._world.standings(tenant)]
        homes = [place for place, one in enumerate(standings) if one in ("home", "frozen")]
        return [] if homes == [home] else [f"{tenant} should live in {home} alone: {standings}"]

    def _check_old_copy(self, tenant: str, source: int, target: int) -> list[str]:
        if self._world.standings(tenant)[source] is None:
            return []
        old, new = (_revisions(self._world.urls[place], tenant) for place in (source, target))
        return (
            [f"{tenant}: {len(old - new)} revisions are in the old home alone"] if old - new else []
        )


def _ended(mover: subprocess.Popen[str]) -> tuple[int, str]:
    assert mover.stderr is not None
    told = mover.stderr.read()
    return mover.wait(), told


def _cell(url: str) -> str:
    server = Server(url)
    try:
        return server.cell
    finally:
        server.close()


def _revisions(url: str, tenant: str) -> set[Any]:
    with psycopg.connect(url) as connection:
        connection.execute("SELECT set_config('trivet.tenant', %s, true)", (tenant,))
        query = "SELECT m.id, r.revision, md5(r.snapshot) FROM revision AS r JOIN memory AS m ON m.key = r.memory"
        return set(connection.execute(query).fetchall())
