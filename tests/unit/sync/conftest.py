"""Fixtures: stores of a team with history, and a folder for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from soak.syncing.world import make_team


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_team(tmp_path_factory.mktemp("team"))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with TemporaryDirectory(dir=tmp_path) as made:
        yield Path(made)
