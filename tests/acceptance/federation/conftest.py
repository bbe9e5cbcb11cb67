from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from trivet import Trivet

Opened = Callable[..., Trivet]


@pytest.fixture
def federation(path: Path) -> Iterator[Opened]:
    """Open a word-only store with members: `federation(notes={...})`."""
    with ExitStack() as stack:

        def open_it(**members: Any) -> Trivet:
            settings: dict[str, Any] = {
                "embedder": "none",
                "background": False,
                "federation": members,
            }
            return stack.enter_context(Trivet.open(path, **settings))

        yield open_it
