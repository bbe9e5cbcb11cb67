from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.conversations import Conversation
from trivet import Trivet

Opened = Callable[..., Trivet]


@pytest.fixture(autouse=True)
def _own_conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def opened(path: Path) -> Iterator[Opened]:
    """Opens the test's store with these settings; words alone unless it says otherwise."""
    with ExitStack() as stack:

        def open_it(**settings: Any) -> Trivet:
            given = {"embedder": "none", "background": False, **settings}
            return stack.enter_context(Trivet.open(path, **given))

        yield open_it


@pytest.fixture
def memory(opened: Opened) -> Trivet:
    return opened()


@pytest.fixture
def talk(tmp_path: Path) -> Conversation:
    return Conversation(tmp_path)
