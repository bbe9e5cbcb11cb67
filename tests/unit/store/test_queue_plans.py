"""Queue queries of every recall use indexes, so that a large import does not slow them down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trivet.store.sqlite.database import Database

MODEL = {"model": 1, "limit": 32, "most": 2, "reader": "rules"}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "memories.db", 1_000)
    yield database
    database.close()


def plan(database: Database, file: str, name: str) -> list[str]:
    rows = (
        database.read().execute(f"EXPLAIN QUERY PLAN {database.sql(file)[name]}", MODEL).fetchall()
    )
    return [str(row[3]) for row in rows]


def test_newest_jobs_need_no_sort(database: Database) -> None:
    steps = plan(database, "jobs", "newest")
    assert any("job_newest" in step for step in steps)
    assert not any("TEMP B-TREE" in step for step in steps)


@pytest.mark.parametrize("file", ["jobs", "graph"])
def test_failed_jobs_use_their_index(database: Database, file: str) -> None:
    steps = plan(database, file, "pending")
    assert sum("_failed" in step for step in steps) == 2
    assert any("COVERING INDEX" in step for step in steps)
