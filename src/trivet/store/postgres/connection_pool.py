"""Connections to one PostgreSQL server, made as they are needed and kept, and the rows they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar

import psycopg
from psycopg_pool import ConnectionPool

# A recall asks the same as the one before.
PREPARED_AFTER = 2


class Row(tuple[Any, ...]):
    """Its values are found by position and by name."""

    places: ClassVar[dict[str, int]] = {}

    def __getitem__(self, name: Any) -> Any:
        return tuple.__getitem__(self, self.places[name] if isinstance(name, str) else name)


def row_factory(cursor: psycopg.Cursor[Row]) -> Callable[[Sequence[Any]], Row]:
    return _row_class(tuple(column.name for column in cursor.description or ()))


@cache
def _row_class(names: tuple[str, ...]) -> type[Row]:
    return type("Row", (Row,), {"places": {name: place for place, name in enumerate(names)}})


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
