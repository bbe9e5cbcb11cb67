"""Fixtures of the unit tests, which run without other Python processes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from support.store_fixtures import open_trivet, trivet

__all__ = ["open_trivet", "trivet"]


@pytest.fixture(autouse=True)
def _no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    start = subprocess.Popen

    def refuse(command: Any, *arguments: Any, **options: Any) -> Any:
        if sys.executable in map(str, command):
            pytest.fail(
                "a unit test starts no Python: this one belongs to tests/acceptance or tests/fault"
            )
        return start(command, *arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", refuse)
