"""Server settings are divided among worker processes."""

from __future__ import annotations

import pytest

from trivet.serve.http.workers import _settings_per_worker
from trivet.settings import Settings


@pytest.mark.parametrize(
    ("threads", "processes", "each"),
    [(8, 2, 4), (9, 2, 5), (8, 4, 4), (64, 4, 16), (1, 2, 1)],
)
def test_threads_are_divided_among_processes(threads: int, processes: int, each: int) -> None:
    assert _settings_per_worker(Settings(server_threads=threads), processes).server_threads == each
