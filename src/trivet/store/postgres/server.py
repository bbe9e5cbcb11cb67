"""One PostgreSQL database: its connections, its schema, and what it must be to keep tenants apart."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool

from trivet.errors import StoreError
from trivet.store.postgres.errors import explain, is_away
from trivet.store.postgres.migrate import migrate
from trivet.store.postgres.rows import Row, row_factory

MOST_CONNECTIONS = 16
# How long a read waits for a server that restarts, and a write for its turn.
PATIENCE = 10.0
# Between two attempts to reach a server that is away.
PAUSE = 0.05

_OUTSIDE = "SELECT rolsuper OR rolbypassrls, rolname FROM pg_roles WHERE rolname = current_user"


class Server:
    """Shared by the stores of all tenants in one process."""

    def __init__(self, url: str, most_connections: int = MOST_CONNECTIONS, patience: float = PATIENCE) -> None:
        self.patience = patience
        self.name = _shown(url)
        with self.errors():
            self._refuse_those_above_the_rules(url)
            self.schema = migrate(url, self.name)
        self._pool = ConnectionPool(
            url,
            connection_class=psycopg.Connection[Row],
            # No prepared statements: behind a transaction pooler the next one may run on another connection.
            kwargs={"autocommit": True, "prepare_threshold": None, "row_factory": row_factory},
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

    def _refuse_those_above_the_rules(self, url: str) -> None:
        """Row-level security does not bind a superuser: with one, a mistake of ours would show a tenant another's."""
        with psycopg.connect(url, connect_timeout=max(1, round(self.patience))) as connection:
            row = connection.execute(_OUTSIDE).fetchone()
        if row is not None and row[0]:
            raise StoreError(
                f"The role {row[1]} is not bound by row-level security, which keeps tenants apart. Nothing was opened; "
                f"make a plain role (CREATE ROLE trivet LOGIN; GRANT CREATE ON SCHEMA public TO trivet) and use it."
            )


def may_retry(error: psycopg.Error, last: float) -> bool:
    return is_away(error) and time.monotonic() < last


def _shown(url: str) -> str:
    """Without the password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        raise StoreError(
            "The address of the PostgreSQL database cannot be read. It looks like postgresql://user@host:5432/name."
        ) from None
    return f"postgresql://{parts.get('user') or ''}@{parts.get('host') or 'localhost'}/{parts.get('dbname') or ''}"
