"""Server threads lease connections and return them when their work is done."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trivet.errors import StoreError
from trivet.serve.http.limits import ThreadPool
from trivet.store.relational.database import lease_scope
from trivet.store.sqlite.connections import Connection
from trivet.store.sqlite.database import Database
from trivet.store.sqlite.store import SqliteStore

THREADS = 6


@pytest.fixture
def database(tmp_path: Path) -> Database:
    SqliteStore(tmp_path / "memory.db").close()
    return Database(tmp_path / "memory.db", 1000)


def test_leased_connection_is_reused_by_next_thread(database: Database) -> None:
    def leased() -> Connection:
        with lease_scope():
            first = database.read()
            with lease_scope():  # nested scope of the same work
                assert database.read() is first
            assert database.read() is first
            return first

    assert len(set(_run_on_each_thread(leased))) == 1
    database.close()


def test_thread_keeps_own_connection_without_lease(database: Database) -> None:
    assert len(set(_run_on_each_thread(database.read))) == THREADS
    assert database.read() is database.read()
    database.close()


def test_concurrent_leases_share_no_connection(database: Database) -> None:
    all_have_one = threading.Barrier(THREADS)

    def leased() -> Connection:
        with lease_scope():
            connection = database.read()
            all_have_one.wait(10)
            return connection

    with ThreadPoolExecutor(THREADS) as threads:
        found = [work.result() for work in [threads.submit(leased) for _ in range(THREADS)]]
    assert len(set(found)) == THREADS
    database.close()


def test_pool_threads_return_leased_connections(database: Database) -> None:
    pool = ThreadPool(THREADS, 10)
    all_run = threading.Barrier(THREADS)

    async def asked() -> set[Connection]:
        await asyncio.gather(
            *(pool.run(lambda: all_run.wait(10)) for _ in range(THREADS))
        )  # all threads exist now
        return {await pool.run(database.read) for _ in range(3 * THREADS)}

    assert len(asyncio.run(asked())) == 1
    assert pool.close(10)
    database.close()


def test_snapshot_connection_stays_with_its_thread(database: Database) -> None:
    with lease_scope():
        moment = database.snapshot()
        reading = moment.__enter__()
    with ThreadPoolExecutor(1) as other:
        assert other.submit(_leased_from, database).result() is not reading
    assert database.read() is reading
    moment.__exit__(None, None, None)
    database.close()


def test_close_leaves_leased_connections_usable(database: Database) -> None:
    leased, closed = threading.Event(), threading.Event()

    def at_work() -> tuple[Connection, int]:
        with lease_scope():
            busy = database.read()
            leased.set()
            assert closed.wait(10)
            return busy, busy.execute("SELECT 1").fetchone()[0]

    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        work = one.submit(at_work)
        assert leased.wait(10)
        idle = other.submit(_leased_from, database).result()
        database.close()
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            idle.execute("SELECT 1")
        closed.set()
        busy, answer = work.result()
    assert answer == 1
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        busy.execute("SELECT 1")
    with pytest.raises(StoreError, match="Open it again"), lease_scope():
        database.read()


def test_store_can_be_closed_within_lease(database: Database) -> None:
    def closes() -> Connection:
        with lease_scope():
            connection = database.read()
            database.close()
            return connection

    with ThreadPoolExecutor(1) as other:
        closed = other.submit(closes).result()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        closed.execute("SELECT 1")


def _leased_from(database: Database) -> Connection:
    with lease_scope():
        return database.read()


def _run_on_each_thread(function: Callable[[], Connection]) -> list[Connection]:
    """Run the function on threads that all stay alive until the end."""
    pools = [ThreadPoolExecutor(1) for _ in range(THREADS)]
    found = [pool.submit(function).result() for pool in pools]
    for pool in pools:
        pool.shutdown()
    return found
