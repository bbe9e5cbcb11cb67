"""Connections to one PostgreSQL server, made as they are needed and kept, and the rows they give."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar

import psycopg
from psycopg_pool import ConnectionPool

# A recall asks the same as the one before.
PREPARED_AFTER = 2
# A store that is filled grows by a few thousand memories meanwhile, which a plan for none still reads in milliseconds.
PLANS_KEPT_SECONDS = 30.0


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


class Connection(psycopg.Connection[Row]):
    """One of the pool, which knows since when it has kept the plans of its statements."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._planned_at = time.monotonic()

    def forget_old_plans(self) -> None:
        """So that statements are planned for tables as large as they are. A plan made while a table was empty reads all
        of it for each row, and the server keeps it until it happens to look at the table."""
        if time.monotonic() - self._planned_at > PLANS_KEPT_SECONDS:
            self.execute("DISCARD PLANS", prepare=False)
            self._planned_at = time.monotonic()


Pool = ConnectionPool[Connection]


def make_pool(
    url: str, prepares: bool, most: int, timeout: float, configure: Callable[[Connection], None] | None = None
) -> Pool:
    return ConnectionPool(
        url,
        connection_class=Connection,
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
