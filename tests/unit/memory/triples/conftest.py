from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from support.store_fixtures import Opened, open_trivet
from support.triples_model import Held, held

__all__ = ["Held", "Opened", "held", "open_trivet"]


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
