"""Rows whose values are found by position and by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar

import psycopg


class Row(tuple[Any, ...]):
    places: ClassVar[dict[str, int]] = {}

    def __getitem__(self, name: Any) -> Any:
        return tuple.__getitem__(self, self.places[name] if isinstance(name, str) else name)


def row_factory(cursor: psycopg.Cursor[Row]) -> Callable[[Sequence[Any]], Row]:
    return _row_class(tuple(column.name for column in cursor.description or ()))


@cache
def _row_class(names: tuple[str, ...]) -> type[Row]:
    return type("Row", (Row,), {"places": {name: place for place, name in enumerate(names)}})
