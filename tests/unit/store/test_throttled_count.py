"""Small tables are counted on every call, and large ones at a bounded rate."""

from __future__ import annotations

from trivet.store.relational.index.embedding_queue import (
    RECOUNT_MIN_ROWS,
    RECOUNT_PAUSE_FACTOR,
    ThrottledCount,
)


class Rows:
    """A table that takes one second to count, with its clock."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.time = 0.0
        self.counted = 0

    def clock(self) -> float:
        return self.time

    def count(self) -> int:
        self.time += 1.0
        self.counted += 1
        return self.rows

    def counted_through(self, throttled: ThrottledCount[int], name: str = "table") -> int:
        return throttled.of(name, self.count, int)


def test_small_table_is_counted_every_time() -> None:
    table = Rows(RECOUNT_MIN_ROWS - 1)
    throttled = ThrottledCount[int](table.clock)
    assert table.counted_through(throttled) == RECOUNT_MIN_ROWS - 1
    table.rows = 3
    assert table.counted_through(throttled) == 3


def test_large_table_is_recounted_after_pause() -> None:
    table = Rows(RECOUNT_MIN_ROWS)
    throttled = ThrottledCount[int](table.clock)
    assert table.counted_through(throttled) == RECOUNT_MIN_ROWS
    table.rows = 3
    table.time += RECOUNT_PAUSE_FACTOR - 0.5
    assert (table.counted_through(throttled), table.counted) == (RECOUNT_MIN_ROWS, 1)
    table.time += 0.5
    assert (table.counted_through(throttled), table.counted) == (3, 2)
    table.rows = 4
    assert table.counted_through(throttled) == 4


def test_each_name_is_counted_separately() -> None:
    table = Rows(RECOUNT_MIN_ROWS)
    throttled = ThrottledCount[int](table.clock)
    table.counted_through(throttled)
    table.rows = RECOUNT_MIN_ROWS + 1
    assert table.counted_through(throttled, "another") == RECOUNT_MIN_ROWS + 1
