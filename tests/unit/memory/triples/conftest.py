from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trivet import Trivet

Opened = Callable[..., Trivet]
Held = Callable[[], list[tuple[str, str, str, str, str | None]]]


@pytest.fixture
def open_trivet(path: Path) -> Iterator[Opened]:
    """Opens the test's store, with no vectors and no thread unless told otherwise, as often as it is called."""
    opened: list[Trivet] = []

    def open_it(**overrides: Any) -> Trivet:
        settings: dict[str, Any] = {"embedder": "none", "background": False} | overrides
        opened.append(Trivet.open(path, **settings))
        return opened[-1]

    yield open_it
    for one in opened:
        one.close()


@pytest.fixture
def held(path: Path) -> Held:
    """What holds: subject, relation, object, and the days from and to which it does."""

    def read() -> list[tuple[str, str, str, str, str | None]]:
        connection = sqlite3.connect(path)
        rows = connection.execute(
            "SELECT s.name, h.relation, t.name, substr(h.valid_from, 1, 10), substr(h.valid_to, 1, 10) FROM held AS h "
            "JOIN concept AS s ON s.concept = h.source JOIN concept AS t ON t.concept = h.target "
            "ORDER BY h.valid_from, s.name, h.relation, t.name, h.valid_to"
        ).fetchall()
        connection.close()
        return rows

    return read


@pytest.fixture
def aliases(path: Path) -> Callable[[], set[tuple[str, str]]]:
    """Every form that a language model's reading gave, with the name of its concept."""

    def read() -> set[tuple[str, str]]:
        connection = sqlite3.connect(path)
        rows = connection.execute(
            "SELECT m.form, c.name FROM mention AS m JOIN concept AS c ON c.concept = m.concept "
            "WHERE m.reader = 'triples'"
        ).fetchall()
        connection.close()
        return set(rows)

    return read
