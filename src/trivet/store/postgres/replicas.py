"""Hot standbys that answer reads while fresh enough for the reader.

A standby cannot tell its age. So a thread notes the primary's log position: a standby that has
replayed a note is at most as old as it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
import psycopg

from trivet.store.postgres.connections import (
    Connection,
    make_pool,
    name_of,
    role_bypassing_row_security,
)

# Checks of the primary per allowed lag, at least every second.
CHECKS_PER_LAG = 4
MAX_CHECK_INTERVAL = 1.0
# Bounds the wait for a standby: the primary can answer instead.
WAIT_SECONDS = 0.2
CONNECT_SECONDS = 2

UNKNOWN = 1 << 63

_STANDBY = """
SELECT pg_is_in_recovery(), coalesce(pg_last_wal_replay_lsn() - '0/0'::pg_lsn, 0)::bigint,
       (SELECT last_change FROM tenant)
"""


class ReplicaState(msgspec.Struct, frozen=True):
    name: str
    up: bool
    chosen: int
    behind: int
    failed: int
    trouble: str | None


class Replica:
    def __init__(self, url: str, prepares: bool, max_connections: int) -> None:
        self.name = name_of(url)
        self.up = False
        self.chosen = self.behind = self.failed = 0
        self.trouble: str | None = None
        self._url = url
        self._pool = make_pool(url, prepares, max_connections, WAIT_SECONDS)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        with self._pool.connection(timeout=WAIT_SECONDS) as connection:
            yield connection

    def mark_failed(self, error: psycopg.Error) -> None:
        self.failed += 1
        self.up = False
        self.trouble = str(error).strip().partition("\n")[0]

    def look(self) -> None:
        try:
            with psycopg.connect(
                self._url, autocommit=True, connect_timeout=CONNECT_SECONDS
            ) as connection:
                above = role_bypassing_row_security(connection)
        except psycopg.Error as error:
            self.trouble = str(error).strip().partition("\n")[0]
            return
        self.trouble = f"the role {above} bypasses row-level security" if above else None
        self.up = above is None

    def state(self) -> ReplicaState:
        return ReplicaState(self.name, self.up, self.chosen, self.behind, self.failed, self.trouble)

    def close(self) -> None:
        self._pool.close()


class Replicas:
    def __init__(
        self,
        replicas: Sequence[Replica],
        lag_seconds: float,
        primary: Callable[[], int],
    ) -> None:
        self._replicas = tuple(replicas)
        self._lag = lag_seconds
        self._primary = primary  # returns the primary's log position
        self._notes: deque[tuple[float, int]] = deque()
        self.missed = 0  # checks that the primary did not answer
        self._turn = 0
        self._ended = threading.Event()
        self._watch = threading.Thread(
            target=self._watch_replicas, name="trivet-replicas", daemon=True
        )
        if self._replicas:
            self.look()
            self._watch.start()

    def __bool__(self) -> bool:
        return bool(self._replicas)

    def choose(
        self, set_up: Callable[[Connection], None], change: int, position: int
    ) -> Replica | None:
        self._turn += 1
        for place in range(len(self._replicas)):
            replica = self._replicas[(self._turn + place) % len(self._replicas)]
            if replica.up and self._is_fresh(replica, set_up, change, position):
                replica.chosen += 1
                return replica
        return None

    def states(self) -> tuple[ReplicaState, ...]:
        return tuple(replica.state() for replica in self._replicas)

    def look(self) -> None:
        moment = time.monotonic()
        try:
            self._notes.append((moment, self._primary()))
        except psycopg.Error:
            # No standby stays fresh now, and reads report the error.
            self.missed += 1
        while self._notes and moment - self._notes[0][0] > 2 * self._lag:
            self._notes.popleft()
        for replica in self._replicas:
            if not replica.up:
                replica.look()

    def close(self) -> None:
        self._ended.set()
        if self._watch.is_alive():
            self._watch.join()
        for replica in self._replicas:
            replica.close()

    def _is_fresh(
        self, replica: Replica, set_up: Callable[[Connection], None], change: int, position: int
    ) -> bool:
        try:
            with replica.connection() as connection, connection.pipeline():
                set_up(connection)
                answer = connection.execute(_STANDBY)
            follows, replayed, last_change = answer.fetchone() or (False, 0, 0)
        except psycopg.Error as error:
            replica.mark_failed(error)
            return False
        if not follows:  # promoted: the primary's address leads to it now
            replica.up, replica.trouble = False, "it is no longer a standby"
            return False
        fresh = replayed >= max(position, self._oldest_allowed()) and (last_change or 0) >= change
        replica.behind += not fresh
        return fresh

    def _oldest_allowed(self) -> int:
        limit = time.monotonic() - self._lag
        return next(
            (position for moment, position in tuple(self._notes) if moment >= limit), UNKNOWN
        )

    def _watch_replicas(self) -> None:
        while not self._ended.wait(min(MAX_CHECK_INTERVAL, self._lag / CHECKS_PER_LAG)):
            self.look()
