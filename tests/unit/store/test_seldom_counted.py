"""A count of few rows is always of now; one of many is at most as old as the time that counting may take allows."""

from __future__ import annotations

from trivet.store.relational.index.embedding_queue import (
    RECOUNT_MIN_ROWS,
    RECOUNT_PAUSE_FACTOR,
    ThrottledCount,
)


class Rows:
    """A table that takes a second to count, and the clock that says so."""

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

    def asked(self, seldom: ThrottledCount[int], name: str = "table") -> int:
        return seldom.of(name, self.count, int)


def test_few_rows_are_counted_each_time() -> None:
    table = Rows(RECOUNT_MIN_ROWS - 1)
    seldom = ThrottledCount[int](table.clock)
    assert table.asked(seldom) == RECOUNT_MIN_ROWS - 1
    table.rows = 3
    assert table.asked(seldom) == 3


def test_many_rows_are_counted_again_after_a_multiple_of_what_it_took() -> None:
    table = Rows(RECOUNT_MIN_ROWS)
    seldom = ThrottledCount[int](table.clock)
    assert table.asked(seldom) == RECOUNT_MIN_ROWS
    table.rows = 3
    table.time += RECOUNT_PAUSE_FACTOR - 0.5
    assert (table.asked(seldom), table.counted) == (RECOUNT_MIN_ROWS, 1)
    table.time += 0.5
    assert (table.asked(seldom), table.counted) == (3, 2)
    table.rows = 4
    assert table.asked(seldom) == 4


def test_each_name_is_counted_for_itself() -> None:
    table = Rows(RECOUNT_MIN_ROWS)
    seldom = ThrottledCount[int](table.clock)
    table.asked(seldom)
    table.rows = RECOUNT_MIN_ROWS + 1
    assert table.asked(seldom, "another") == RECOUNT_MIN_ROWS + 1
