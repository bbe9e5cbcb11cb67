from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trivet import Trivet

Opened = Callable[..., Trivet]


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's configuration, which is the test's own."""
    folder = tmp_path / "configuration"
    monkeypatch.setenv("TRIVET_CONFIG", str(folder / "trivet.toml"))
    return folder


@pytest.fixture
def open_trivet(path: Path, configuration: Path) -> Iterator[Opened]:
    opened: list[Trivet] = []

    def open_it(**overrides: Any) -> Trivet:
        settings: dict[str, Any] = {"embedder": "none", "background": False} | overrides
        opened.append(Trivet.open(path, **settings))
        return opened[-1]

    yield open_it
    for one in opened:
        one.close()


@pytest.fixture
def trivet(open_trivet: Opened) -> Trivet:
    return open_trivet()
