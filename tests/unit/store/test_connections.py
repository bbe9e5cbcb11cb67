"""A thread of a server keeps no connection to a tenant's file when its work is done."""

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


def test_what_one_threads_work_borrowed_the_next_thread_has(database: Database) -> None:
    def borrowed() -> Connection:
        with lease_scope():
            first = database.read()
            with lease_scope():  # a piece of the same work
                assert database.read() is first
            assert database.read() is first
            return first

    assert len(set(_one_after_another(borrowed))) == 1
    database.close()


def test_outside_a_piece_of_work_a_thread_keeps_its_own(database: Database) -> None:
    assert len(set(_one_after_another(database.read))) == THREADS
    assert database.read() is database.read()
    database.close()


def test_work_at_the_same_time_shares_no_connection(database: Database) -> None:
    all_have_one = threading.Barrier(THREADS)

    def borrowed() -> Connection:
        with lease_scope():
            connection = database.read()
            all_have_one.wait(10)
            return connection

    with ThreadPoolExecutor(THREADS) as threads:
        found = [work.result() for work in [threads.submit(borrowed) for _ in range(THREADS)]]
    assert len(set(found)) == THREADS
    database.close()


def test_the_threads_of_a_server_give_back_what_they_borrowed(database: Database) -> None:
    pool = ThreadPool(THREADS, 10)
    all_run = threading.Barrier(THREADS)

    async def asked() -> set[Connection]:
        await asyncio.gather(
            *(pool.run(lambda: all_run.wait(10)) for _ in range(THREADS))
        )  # every thread exists
        return {await pool.run(database.read) for _ in range(3 * THREADS)}

    assert len(asyncio.run(asked())) == 1
    assert pool.close(10)
    database.close()


def test_a_connection_that_reads_one_moment_stays_with_its_thread(database: Database) -> None:
    with lease_scope():
        moment = database.snapshot()
        reading = moment.__enter__()
    with ThreadPoolExecutor(1) as other:
        assert other.submit(_borrowed_from, database).result() is not reading
    assert database.read() is reading
    moment.__exit__(None, None, None)
    database.close()


def test_closing_waits_for_no_work_and_takes_no_connection_from_it(database: Database) -> None:
    borrowed, closed = threading.Event(), threading.Event()

    def at_work() -> tuple[Connection, int]:
        with lease_scope():
            busy = database.read()
            borrowed.set()
            assert closed.wait(10)
            return busy, busy.execute("SELECT 1").fetchone()[0]

    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        work = one.submit(at_work)
        assert borrowed.wait(10)
        idle = other.submit(_borrowed_from, database).result()
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


def test_work_may_close_the_store_that_it_borrowed_from(database: Database) -> None:
    def closes() -> Connection:
        with lease_scope():
            connection = database.read()
            database.close()
            return connection

    with ThreadPoolExecutor(1) as other:
        closed = other.submit(closes).result()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        closed.execute("SELECT 1")


def _borrowed_from(database: Database) -> Connection:
    with lease_scope():
        return database.read()


def _one_after_another(function: Callable[[], Connection]) -> list[Connection]:
    """By threads that all live to the end."""
    pools = [ThreadPoolExecutor(1) for _ in range(THREADS)]
    found = [pool.submit(function).result() for pool in pools]
    for pool in pools:
        pool.shutdown()
    return found
