"""An interruption that Python dropped still ends what waits for changes."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from trivet.cli.interrupt import noted_interrupt
from trivet.sources.files.watch import changes


def test_a_watch_ends_though_the_exception_was_lost(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    with noted_interrupt() as stop:
        with pytest.raises(KeyboardInterrupt):  # as what Python calls while it tidies up would swallow it
            signal.raise_signal(signal.SIGINT)
        assert list(changes(tmp_path, stop)) == []
    assert signal.getsignal(signal.SIGINT) is before


def test_where_interruptions_are_ignored_they_stay_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with noted_interrupt() as stop:
            signal.raise_signal(signal.SIGINT)
            assert not stop.is_set()
    finally:
        signal.signal(signal.SIGINT, before)
