from __future__ import annotations

from pathlib import Path
from shutil import copy

import pytest

from support.command_line import CommandLine


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of the test's own, without an embedder and isolated from the user's files."""
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.delenv("TRIVET_CONFIG", raising=False)
    monkeypatch.setenv("TRIVET_PATH", str(tmp_path / "memory.db"))
    monkeypatch.setenv("TRIVET_EMBEDDER", "none")
    return tmp_path / "memory.db"


@pytest.fixture
def empty(store: Path, empty_store: Path) -> None:
    """Create an empty store."""
    copy(empty_store, store)


@pytest.fixture
def trivet(monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    return CommandLine(monkeypatch)


@pytest.fixture
def staging(trivet: CommandLine, empty: None) -> str:
    """Store one memory and return its id."""
    arguments = (
        "--tag",
        "staging",
        "--tag",
        "ports",
        "--scope",
        "acme/shop",
        "--title",
        "Staging port",
    )
    id: str = trivet.json("remember", "The staging database listens on port 6543.", *arguments)[
        "id"
    ]
    return id
