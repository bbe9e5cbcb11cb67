"""Elapsed time is correct whatever happens to the clock."""

from __future__ import annotations

from trivet.common.clock import ClockReading, elapsed_seconds, read_clock

DAY = 24 * 3600.0


def test_clock_jump_adds_no_time() -> None:
    before = read_clock()
    jumped = ClockReading(at="2126-01-01T00:00:00Z", boot=before.boot, up=before.up + 5)
    if before.boot:  # only where the system reports its uptime
        assert elapsed_seconds(before, jumped) == 5
        assert 0 <= elapsed_seconds(before, read_clock()) < DAY


def test_restart_uses_clock_and_never_goes_backwards() -> None:
    one, later = (
        ClockReading(at="2026-01-01T00:00:00Z", boot="a", up=9),
        ClockReading(at="2026-01-03T00:00:00Z", boot="b", up=1),
    )
    assert elapsed_seconds(one, later) == 2 * DAY
    assert elapsed_seconds(later, one) == 0
