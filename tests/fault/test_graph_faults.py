"""A graph reading that is killed or out of disk space leaves no partial result and is retried."""

from __future__ import annotations

import os
import resource
import signal
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

import pytest

from support.waiting import ended, heard
from trivet import StoreError, Trivet
from trivet.graph.extract import extract
from trivet.memory.worker.extraction import Extraction
from trivet.store.sqlite.store import SqliteStore

from .actions import copied, open_store
from .conftest import Start
from .test_killed_work import kill, problems

NAMES = ("Clara", "Acme", "Berlin", "Dresden", "Emil", "Rostock")


def said(number: int) -> str:
    """Return words that mention several concepts, some unique and some shared."""
    random = Random(number)
    return f"we met {random.choice(NAMES)} in {random.choice(NAMES)}, and Person{number}x saw Thing{number}y"


def memories(path: Path, count: int) -> list[str]:
    return copied(path, tuple(map(said, range(count))))


def read(path: str, tell: Connection) -> None:
    with open_store(path) as trivet:
        tell.send("reading")
        trivet.drain()
        tell.send("read")


def read_until_killed(path: str, mentions: int, tell: Connection) -> None:
    """Kill the process inside a transaction after this many mentions."""
    written = 0

    def count(statement: str) -> None:
        nonlocal written
        written += "INTO mention" in statement
        if written > mentions:
            os.kill(os.getpid(), signal.SIGKILL)

    store = SqliteStore(Path(path))
    tell.send("reading")
    store._database.read().set_trace_callback(count)
    Extraction(store).drain(threading.Event())


def read_on_a_full_disk(path: str, tell: Connection) -> None:
    """Block file growth like a full disk, then allow it and reuse the same store object."""
    with open_store(path) as trivet:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        try:
            trivet.drain()
            tell.send("it was never refused")
        except StoreError as error:
            tell.send(str(error))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        tell.send((trivet.stats().mentions, trivet.stats().not_in_graph))
        trivet.drain()
        tell.send((trivet.stats().mentions, trivet.stats().not_in_graph))


def mentions_by_memory(path: Path) -> dict[str, set[str]]:
    """Return what the graph holds for each memory, directly from its tables."""
    store = SqliteStore(path)
    rows = store._database.read().execute(
        "SELECT m.id, c.name FROM memory AS m JOIN mention AS n ON n.memory = m.key JOIN concept AS c USING (concept)"
    )
    found: dict[str, set[str]] = {}
    for id, name in rows.fetchall():
        found.setdefault(id, set()).add(name)
    store.close()
    return found


def wholly_read(path: Path, ids: list[str]) -> list[str]:
    """Return the memories that were read, and check that none was read in part."""
    found = mentions_by_memory(path)
    for number, id in enumerate(ids):
        if id in found:
            assert found[id] == {mention.name for mention in extract(None, said(number))}
    return list(found)


def finish(path: Path, ids: list[str]) -> None:
    """Finish the remaining work as the next process would, including killed processes' leases."""
    store = SqliteStore(path)
    store.graph.retry_now("rules")
    store.close()
    with open_store(str(path)) as trivet:
        trivet.drain()
        assert problems(trivet) == []
        assert trivet.stats().not_in_graph == 0
    assert sorted(wholly_read(path, ids)) == sorted(ids)


@pytest.mark.parametrize("mentions", [0, 1, 500, 801, 1_600])
def test_killed_between_two_mentions(start: Start, path: Path, mentions: int) -> None:
    ids = memories(path, 600)
    process, pipe = start(read_until_killed, str(path), mentions)
    assert heard(pipe) == "reading"
    ended(process)
    assert process.exitcode == -signal.SIGKILL
    assert len(wholly_read(path, ids)) < len(ids)
    with open_store(str(path)) as trivet:
        assert problems(trivet) == []
    finish(path, ids)


def test_killed_at_any_moment(start: Start, path: Path) -> None:
    random = Random(5)
    ids = memories(path, 600)
    for _ in range(5):
        kill(start(read, str(path)), 1, random.uniform(0, 0.1))
        wholly_read(path, ids)
        with open_store(str(path)) as trivet:
            assert problems(trivet) == []
    finish(path, ids)


def test_leased_work_of_a_killed_process_runs_on_demand(path: Path) -> None:
    """`embed` and `reindex` do not wait for a dead process's lease to expire."""
    ids = memories(path, 10)
    for again in (Trivet.embed, Trivet.reindex):
        store = SqliteStore(path)
        store.upkeep.rebuild_graph()
        assert len(store.graph.lease("rules", 100, 600)) == len(ids)
        store.close()
        with open_store(str(path)) as trivet:
            again(trivet)
            assert trivet.stats().not_in_graph == 0
    assert len(wholly_read(path, ids)) == len(ids)


def test_full_disk(start: Start, path: Path) -> None:
    ids = memories(path, 600)
    _, pipe = start(read_on_a_full_disk, str(path))
    error, (mentions, waiting), (all_mentions, left) = heard(pipe), heard(pipe), heard(pipe)
    assert "disk" in error
    assert "rollback" not in error
    assert mentions < all_mentions
    assert waiting > 0
    assert left == 0, "the work finishes as soon as there is room"
    assert len(wholly_read(path, ids)) == len(ids)
    with open_store(str(path)) as trivet:
        assert problems(trivet) == []
