"""The directory: which cell each tenant lives in. Servers look there first; the cells themselves have the say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import psycopg

from trivet.errors import StoreError
from trivet.store.postgres.connection_pool import Connection, Pool, make_pool
from trivet.store.postgres.dialect import QUERIES
from trivet.store.postgres.errors import explain
from trivet.store.postgres.requirements import name_of

# It is asked once for a tenant, not for a request.
MOST_CONNECTIONS = 4


class Directory:
    """In a database of its own, or in one of the cells. Connected when it is first asked."""

    def __init__(self, url: str, patience: float) -> None:
        self._url = url
        self._name = name_of(url)
        self._patience = patience

    @contextmanager
    def of(self, tenant: str) -> Iterator[Connection]:
        """A transaction in which one tenant's entry is seen."""
        try:
            with self._pool.connection() as connection, connection.transaction():
                waits = f"{round(self._patience * 1000)}ms"
                connection.execute(QUERIES("cells")["enter"], {"tenant": tenant, "patience": waits})
                yield connection
        except psycopg.Error as error:
            raise StoreError(f"The directory: {explain(error, self._name, self._patience)}") from error

    def close(self) -> None:
        if "_pool" in self.__dict__:
            self._pool.close()

    @cached_property
    def _pool(self) -> Pool:
        return make_pool(self._url, False, MOST_CONNECTIONS, self._patience)
