"""Connections to one PostgreSQL server, made as they are needed and kept."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
from psycopg_pool import ConnectionPool

from trivet.store.postgres.rows import Row, row_factory

# A recall asks the same as the one before.
PREPARED_AFTER = 2

Connection = psycopg.Connection[Row]
Pool = ConnectionPool[Connection]


def make_pool(
    url: str, prepares: bool, most: int, timeout: float, configure: Callable[[Connection], None] | None = None
) -> Pool:
    return ConnectionPool(
        url,
        connection_class=psycopg.Connection[Row],
        # Behind a transaction pooler the next statement may run on another connection, where it is not prepared.
        kwargs={
            "autocommit": True,
            "prepare_threshold": PREPARED_AFTER if prepares else None,
            "row_factory": row_factory,
        },
        configure=configure,
        min_size=0,
        max_size=most,
        timeout=timeout,
        reconnect_timeout=timeout,
        open=True,
    )
