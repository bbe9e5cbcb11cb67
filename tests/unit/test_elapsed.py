"""How long a laptop was away, whatever was done to its clock."""

from __future__ import annotations

from trivet.common.clock import ClockReading, elapsed_seconds, read_clock

DAY = 24 * 3600.0


def test_a_clock_that_jumps_while_the_machine_runs_adds_nothing() -> None:
    before = read_clock()
    jumped = ClockReading(at="2126-01-01T00:00:00Z", boot=before.boot, up=before.up + 5)
    if before.boot:  # where the system tells for how long it has run
        assert elapsed_seconds(before, jumped) == 5
        assert 0 <= elapsed_seconds(before, read_clock()) < DAY


def test_over_a_restart_the_clock_counts_and_never_backwards() -> None:
    one, later = (
        ClockReading(at="2026-01-01T00:00:00Z", boot="a", up=9),
        ClockReading(at="2026-01-03T00:00:00Z", boot="b", up=1),
    )
    assert elapsed_seconds(one, later) == 2 * DAY
    assert elapsed_seconds(later, one) == 0
