from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from trivet import Trivet

Opened = Callable[..., Trivet]


@pytest.fixture
def opened(path: Path) -> Iterator[Opened]:
    with ExitStack() as stack:

        def open_it(**settings: Any) -> Trivet:
            given = {"embedder": "none", "background": False, **settings}
            return stack.enter_context(Trivet.open(path, **given))

        yield open_it


@pytest.fixture
def memory(opened: Opened) -> Trivet:
    return opened()
