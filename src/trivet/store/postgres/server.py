"""One PostgreSQL database: its connections, its schema, and what it must be to keep tenants apart."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool

from trivet.errors import InvalidInput, StoreError
from trivet.store.postgres.errors import explain, is_away
from trivet.store.postgres.migrate import migrate
from trivet.store.postgres.rows import Row, row_factory
from trivet.store.relational.room import Room

MOST_CONNECTIONS = 16
# How long a read waits for a server that restarts, and a write for its turn.
PATIENCE = 10.0
# Between two attempts to reach a server that is away.
PAUSE = 0.05

# Of recalls the second one is told from the first by then.
PREPARED_AFTER = 2

# For the vectors of all tenants: some 600,000 passages of the bundled model.
VECTOR_BYTES = 512 * 2**20

Pooler = Literal["auto", "yes", "no"]

_OUTSIDE = "SELECT rolsuper OR rolbypassrls, rolname FROM pg_roles WHERE rolname = current_user"
_PROCESS = "SELECT pg_backend_pid()"
_TIMELINE = "SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END"


class Server:
    """Shared by the stores of all tenants in one process."""

    def __init__(
        self,
        url: str,
        most_connections: int = MOST_CONNECTIONS,
        patience: float = PATIENCE,
        pooler: Pooler = "auto",
        vector_bytes: int = VECTOR_BYTES,
    ) -> None:
        self.room = Room(vector_bytes)
        self.patience = patience
        self.name = _shown(url)
        self.age = 0
        self._timeline = ""
        with self.errors():
            pooled = self._look(url)
            self.schema = migrate(url, self.name)
        self.prepares = pooler == "no" or (pooler == "auto" and not pooled)
        self._pool = ConnectionPool(
            url,
            connection_class=psycopg.Connection[Row],
            # Behind a transaction pooler the next statement may run on another connection, where it is not prepared.
            kwargs={
                "autocommit": True,
                "prepare_threshold": PREPARED_AFTER if self.prepares else None,
                "row_factory": row_factory,
            },
            configure=self._notice_timeline,
            min_size=0,
            max_size=most_connections,
            timeout=patience,
            reconnect_timeout=patience,
            open=True,
        )

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Row]]:
        with self._pool.connection() as connection:
            yield connection

    def has_tenant(self, name: str) -> bool:
        with self.errors(), self.connection() as connection, connection.pipeline():
            connection.execute("SELECT set_config('trivet.tenant', %s, true)", (name,))
            found = connection.execute("SELECT 1 FROM tenant WHERE tenant = %s", (name,))
        return found.fetchone() is not None

    def attempts(self) -> Iterator[float]:
        """Yields as often as a lost connection is worth another try."""
        last = time.monotonic() + self.patience
        while True:
            yield last
            time.sleep(PAUSE)
            self._pool.check()

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise StoreError(explain(error, self.name, self.patience)) from error

    def close(self) -> None:
        self._pool.close()

    def _look(self, url: str) -> bool:
        """Whether a pooler stands between: it gives the connection a process number of its own making.

        Row-level security does not bind a superuser: with one, a mistake of ours would show a tenant another's.
        """
        with psycopg.connect(url, autocommit=True, connect_timeout=max(1, round(self.patience))) as connection:
            row = connection.execute(_OUTSIDE).fetchone()
            process = connection.execute(_PROCESS).fetchone()
            own = connection.info.backend_pid
        if row is not None and row[0]:
            raise StoreError(
                f"The role {row[1]} is not bound by row-level security, which keeps tenants apart. Nothing was opened; "
                f"make a plain role (CREATE ROLE trivet LOGIN; GRANT CREATE ON SCHEMA public TO trivet) and use it."
            )
        return process is None or process[0] != own

    def _notice_timeline(self, connection: psycopg.Connection[Row]) -> None:
        """A standby that was promoted starts a new timeline, and may not have the last that the old primary did."""
        row = connection.execute(_TIMELINE).fetchone()
        timeline = str(row[0]) if row else ""
        if self._timeline and timeline != self._timeline:
            self.age += 1
        self._timeline = timeline


def may_retry(error: psycopg.Error, last: float) -> bool:
    return is_away(error) and time.monotonic() < last


def _shown(url: str) -> str:
    """Without the password. A piece of one that was not written as an address needs it must not pass as a host."""
    try:
        parts = {name: str(value or "") for name, value in conninfo_to_dict(url).items()}
        readable = parts.get("port", "").replace(",", "").isdigit() or not parts.get("port")
    except psycopg.Error:
        readable = False
    if not readable or "@" in parts.get("dbname", "") + parts.get("host", ""):
        raise InvalidInput(
            "The address of the PostgreSQL database cannot be read. It looks like postgresql://user@host:5432/name; "
            "in a password write @ as %40, / as %2F, : as %3A and % as %25, or keep it in ~/.pgpass."
        )
    return f"postgresql://{parts.get('user', '')}@{parts.get('host') or 'localhost'}/{parts.get('dbname', '')}"
