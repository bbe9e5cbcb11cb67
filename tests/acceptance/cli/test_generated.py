"""The committed files match what the contract generates."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_generated_files_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import generate

    assert [str(path.relative_to(ROOT)) for path in generate.stale()] == [], "run `make generate`"
    del sys.modules["generate"]
