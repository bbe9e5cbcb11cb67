from __future__ import annotations

from pathlib import Path

import pytest

from support.conversations import Conversation
from support.store_fixtures import memory, open_trivet, opened

__all__ = ["memory", "open_trivet", "opened"]


@pytest.fixture(autouse=True)
def _own_conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def talk(tmp_path: Path) -> Conversation:
    return Conversation(tmp_path)
