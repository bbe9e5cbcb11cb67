"""Stores of every earlier version: migrated by killed processes, and offered to older code."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from psycopg.conninfo import conninfo_to_dict

from soak.older_code import COMMITS, OPENS, WRITES, run, taken_out
from support.postgres_server import PostgresServer
from support.postgres_versions import make_version as make_postgres_version
from support.stores import found, memory
from support.version_one import make_version
from support.waiting import ended
from trivet import Trivet
from trivet.store.postgres import PostgresStore
from trivet.store.postgres.migrate import SCHEMA_VERSION as POSTGRES_VERSION
from trivet.store.relational.store import RelationalStore
from trivet.store.sqlite.database import SCHEMA_VERSION
from trivet.store.sqlite.store import SqliteStore
from trivet.types import Memory

# Kills of a whole campaign, per version and store.
KILLS = 40
# About as long as a migration takes, so a kill strikes within it or after it.
LONGEST_SECONDS = {"sqlite": 0.02, "postgres": 0.25}
MORE = 200
_FORKS = multiprocessing.get_context("forkserver")


def main(seed: int, share: float) -> dict[str, Any]:
    random, counts = Random(seed), Counter[str]()
    kills = max(2, int(KILLS * share))
    with tempfile.TemporaryDirectory(prefix="trivet-upgrades-") as folder:
        violations = [
            *_sqlite(Path(folder), random, kills, counts),
            *_postgres(random, kills, counts),
            *_older_code(Path(folder), counts),
        ]
    return {**counts, "violations": violations}


def _sqlite(folder: Path, random: Random, kills: int, counts: Counter[str]) -> Iterator[str]:
    for version in range(1, SCHEMA_VERSION):
        old = folder / f"{version}.db"
        memories = make_version(old, version, MORE)
        for number in range(kills):
            path = folder / f"{version}-{number}.db"
            shutil.copy(old, path)
            _kill(str(path), "sqlite", random, counts)
            store = SqliteStore(path)
            yield from (
                f"SQLite, schema {version}: {wrong}" for wrong in _differences(store, memories)
            )
            store.close()


def _postgres(random: Random, kills: int, counts: Counter[str]) -> Iterator[str]:
    server = PostgresServer()
    memories = tuple(memory(f"relay number{number}") for number in range(MORE))
    try:
        for version in range(1, POSTGRES_VERSION):
            old = server.empty_database()
            make_postgres_version(old, version, "default", memories)
            for _ in range(kills):
                url = server.empty_database(str(conninfo_to_dict(old)["dbname"]))
                _kill(url, "postgres", random, counts)
                store = PostgresStore(url)
                yield from (
                    f"PostgreSQL, schema {version}: {wrong}"
                    for wrong in _differences(store, memories)
                )
                if len(found(store, "relay", depth=2 * MORE)) != MORE:
                    yield f"PostgreSQL, schema {version}: not every memory is found by its words"
                store.close()
                server.drop(url)
    finally:
        server.remove()


def _differences(store: RelationalStore, memories: tuple[Memory, ...]) -> Iterator[str]:
    if list(store.memories.everything()) != list(memories):
        yield "not the same memories after a killed migration"
    yield from (f"doctor: {finding}" for finding in store.upkeep.findings() if not finding.ok)


def _kill(address: str, kind: str, random: Random, counts: Counter[str]) -> None:
    ours, theirs = multiprocessing.Pipe()
    process = _FORKS.Process(target=_open, args=(address, kind, theirs), daemon=True)
    process.start()
    theirs.close()
    assert ours.recv() == "begins"
    late = ours.poll(random.uniform(0, LONGEST_SECONDS[kind]))
    counts[f"{kind} migrations killed {'when done' if late else 'on the way'}"] += 1
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    ended(process)
    ours.close()


def _open(address: str, kind: str, tell: Connection) -> None:
    tell.send("begins")
    store = SqliteStore(Path(address)) if kind == "sqlite" else PostgresStore(address)
    tell.send("done")
    store.close()


def _older_code(folder: Path, counts: Counter[str]) -> Iterator[str]:
    for version in range(1, SCHEMA_VERSION):
        package = taken_out(version, folder)
        if package is None:
            counts["older versions not in this clone's history"] += 1
            continue
        path = folder / f"written-by-{version}.db"
        written = run(package, WRITES, path)
        if not written.startswith("["):
            yield f"version {version} could not write: {written}"
            continue
        yield from _as_written(path, version, json.loads(written))
        before = path.read_bytes()
        told = run(package, OPENS, path)
        if "refused: " not in told or "newer Trivet" not in told or path.read_bytes() != before:
            yield f"version {version} met a store of today: {told}"
        counts["older versions that wrote, were read, and refused"] += 1


def _as_written(path: Path, version: int, rows: list[list[Any]]) -> Iterator[str]:
    with Trivet.open(path, embedder="none", background=False) as trivet:
        trivet.drain()
        now = [
            [one.id, one.content, one.state, one.revision]
            for one in (trivet.get(row[0]) for row in rows)
        ]
        if now != rows:
            yield f"what version {version} wrote as {rows} is {now} today"
        office, clara, _, move = (row[0] for row in rows)
        for query, expected in {
            "Where is the office of Acme?": move,
            "Clara spring": clara,
        }.items():
            hits = trivet.recall(query).hits
            if not hits or hits[0].id != expected:
                yield f"a store of version {version} answers {query!r} with {[hit.content for hit in hits]}"
        if office in {hit.id for hit in trivet.recall("Emil Rostock").hits}:
            yield f"a store of version {version} shows what was superseded"
        if wrong := [
            finding
            for finding in trivet.doctor()
            if not finding.ok and finding.check != "room on disk"
        ]:
            yield f"a store of version {version}: doctor: {wrong}"


assert set(COMMITS) >= set(range(1, SCHEMA_VERSION)), (
    "name the last commit of the version before in older_code.py"
)
