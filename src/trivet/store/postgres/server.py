"""A PostgreSQL database with its standbys, and the directory of each tenant's cell.

The cells decide, even against the directory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Literal

import psycopg

from trivet.errors import Damaged, Moved, StoreError
from trivet.store.postgres.connections import (
    QUERIES,
    Connection,
    Pool,
    address_of,
    explain,
    is_damage,
    is_pooled,
    make_pool,
    name_of,
    owner_of_tables,
    refusal,
    role_bypassing_row_security,
)
from trivet.store.postgres.index_files import IndexFolder
from trivet.store.postgres.migrate import migrate
from trivet.store.postgres.replicas import CONNECT_SECONDS, Replica, Replicas
from trivet.store.relational.index.vector_index import MemoryLimit
from trivet.store.servers import TenantState, decode_tenant_state

# The directory is asked once per tenant, not per request.
DIRECTORY_MAX_CONNECTIONS = 4


class Directory:
    def __init__(self, url: str, patience: float) -> None:
        self._url = url
        self._name = name_of(url)
        self._patience = patience

    @contextmanager
    def of(self, tenant: str) -> Iterator[Connection]:
        try:
            with self._pool.connection() as connection, connection.transaction():
                waits = f"{round(self._patience * 1000)}ms"
                connection.execute(QUERIES("cells")["enter"], {"tenant": tenant, "patience": waits})
                yield connection
        except psycopg.Error as error:
            raise StoreError(
                f"The directory: {explain(error, self._name, self._patience)}"
            ) from error

    def close(self) -> None:
        if "_pool" in self.__dict__:
            self._pool.close()

    @cached_property
    def _pool(self) -> Pool:
        return make_pool(self._url, False, DIRECTORY_MAX_CONNECTIONS, self._patience)


MAX_CONNECTIONS = 16
# Seconds that a read waits for a restarting server, and a write for its turn.
PATIENCE = 10.0
PAUSE = 0.05
# About 600,000 passages of the bundled model, over all tenants.
VECTOR_BYTES = 512 * 2**20
REPLICA_LAG_SECONDS = 5.0

# Every database has this tenant, so the directory does not list it.
FIRST_TENANT = "default"
# Names the whole database; no tenant can have this name.
WHOLE = "*"

Pooler = Literal["auto", "yes", "no"]

TIMELINE = (
    "SELECT CASE WHEN pg_is_in_recovery() THEN '' "
    "ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END"
)
_WRITTEN = "SELECT (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint"


class Server:
    def __init__(
        self,
        url: str,
        max_connections: int = MAX_CONNECTIONS,
        patience: float = PATIENCE,
        pooler: Pooler = "auto",
        vector_bytes: int = VECTOR_BYTES,
        replica_urls: Sequence[str] = (),
        replica_lag_seconds: float = REPLICA_LAG_SECONDS,
        directory_url: str = "",
        index_folder: Path | None = None,
    ) -> None:
        self.patience = patience
        self.name = name_of(url)
        self.address = address_of(url)
        self._directory = Directory(directory_url, patience) if directory_url else None
        self.vector_memory = MemoryLimit(vector_bytes)
        self.index_folder = IndexFolder(index_folder)
        self._cell: str | None = None
        self.generation = 0
        self.timeline = ""
        with self.errors():
            prepares = self._prepares(url, pooler)
            self.schema = migrate(url, self.name)
            self.owner, self.acts_as_owner = self._owner(url)
        replicas = [Replica(one, prepares, max_connections) for one in replica_urls]
        self._pool = make_pool(url, prepares, max_connections, patience, self._notice_timeline)
        self.replicas = Replicas(replicas, replica_lag_seconds, self._position)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        with self._pool.connection() as connection:
            yield connection

    def has_tenant(self, name: str) -> bool:
        with self.errors(), self.connection() as connection, connection.pipeline():
            connection.execute("SELECT set_config('trivet.tenant', %s, true)", (name,))
            found = connection.execute("SELECT 1 FROM tenant WHERE tenant = %s", (name,))
        return found.fetchone() is not None

    @cached_property
    def cell(self) -> str:
        """The database's permanent name, wherever it moves."""
        if self.known_cell() is None:
            with self.as_tenant(WHOLE) as connection:
                connection.execute(QUERIES("cells")["name_cell"])
        known = self.known_cell()
        assert known is not None
        return known

    def known_cell(self) -> str | None:
        """Return the cell or None: a standby cannot create a missing one."""
        if self._cell is None:
            with self.as_tenant(WHOLE) as connection:
                row = connection.execute(QUERIES("cells")["cell"]).fetchone()
            self._cell = None if row is None else str(row[0])
        return self._cell

    @contextmanager
    def as_tenant(self, tenant: str) -> Iterator[Connection]:
        with self.errors(), self.connection() as connection, connection.transaction():
            connection.execute(QUERIES("cells")["enter"], self.enter_parameters(tenant))
            yield connection

    def enter_parameters(self, tenant: str) -> Mapping[str, str]:
        return {"tenant": tenant, "patience": f"{round(self.patience * 1000)}ms"}

    def standing(self, tenant: str) -> TenantState | None:
        with self.as_tenant(tenant) as connection:
            row = connection.execute(QUERIES("cells")["standing"]).fetchone()
        return None if row is None else decode_tenant_state(row["standing"], row["move"])

    def activate(self, tenant: str, move: str) -> None:
        with self.as_tenant(tenant) as connection:
            row = connection.execute(QUERIES("cells")["lock"]).fetchone()
            state = None if row is None else decode_tenant_state(row["standing"], row["move"])
            if state is not None and state.standing == "arriving" and state.move == move:
                connection.execute(QUERIES("cells")["activate"])

    def listed(self, tenant: str) -> tuple[str, str] | None:
        with self._listing(tenant) as connection:
            row = connection.execute(QUERIES("cells")["listed"]).fetchone()
        return None if row is None else (str(row[0]), str(row[1]))

    def list_home(self, tenant: str, cell: str, address: str) -> None:
        with self._listing(tenant) as connection:
            connection.execute(QUERIES("cells")["list"], {"cell": cell, "address": address})

    def claim(self, tenant: str) -> None:
        """Raise Moved before creating a tenant that the directory lists elsewhere."""
        if self._directory is None or tenant == FIRST_TENANT:
            return
        with self._listing(tenant) as connection:
            connection.execute(
                QUERIES("cells")["claim"], {"cell": self.cell, "address": self.address}
            )
            row = connection.execute(QUERIES("cells")["listed"]).fetchone()
        if row is not None and row[0] != self.cell:
            raise Moved(
                f"According to the directory, the tenant {tenant} lives at {row[1]}. "
                "Nothing was created here."
            )

    def _listing(self, tenant: str) -> AbstractContextManager[Connection]:
        return self._directory.of(tenant) if self._directory else self.as_tenant(tenant)

    def attempts(self) -> Iterator[float]:
        """Yield the deadline once per try: a lost connection is worth another."""
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
            kind = refusal(error) or (Damaged if is_damage(error) else StoreError)
            raise kind(explain(error, self.name, self.patience)) from error

    def close(self) -> None:
        if self._directory:
            self._directory.close()
        self.replicas.close()
        self._pool.close()

    def _prepares(self, url: str, pooler: Pooler) -> bool:
        with psycopg.connect(
            url, autocommit=True, connect_timeout=max(1, round(self.patience))
        ) as connection:
            above, pooled = role_bypassing_row_security(connection), is_pooled(connection)
        if above is not None:
            raise StoreError(
                f"The role {above} bypasses row-level security, which keeps tenants apart. "
                "Nothing was opened; create a plain role (CREATE ROLE trivet LOGIN; "
                "GRANT CREATE ON SCHEMA public TO trivet) and use it."
            )
        return pooler == "no" or (pooler == "auto" and not pooled)

    def _owner(self, url: str) -> tuple[str, bool]:
        with psycopg.connect(url, autocommit=True) as connection:
            owned = owner_of_tables(connection)
        assert owned is not None, "the migration has just checked the tables"
        return owned

    def _notice_timeline(self, connection: Connection) -> None:
        """Detect a promoted standby, which may lack the latest changes."""
        row = connection.execute(TIMELINE).fetchone()
        timeline = str(row[0]) if row else ""
        if self.timeline and timeline != self.timeline:
            self.generation += 1
        self.timeline = timeline

    def _position(self) -> int:
        with self._pool.connection(timeout=CONNECT_SECONDS) as connection:
            row = connection.execute(_WRITTEN).fetchone()
        return int(row[0]) if row else 0
