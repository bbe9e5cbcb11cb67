from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.resident_home import SETTINGS, Home, start_resident, stop_resident


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name, since a socket address is limited in length."""
    folder = Path(tempfile.mkdtemp(prefix="trivet-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def home(folder: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A home where no resident process runs yet."""
    _set(monkeypatch, folder, path)
    home = Home(folder, path)
    yield home
    home.end()


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a resident process shared by tests, each with its own store."""
    folder = Path(tempfile.mkdtemp(prefix="trivet-"))
    settings = str(tmp_path_factory.getbasetemp() / "home" / "xdg_config_home")
    environment = {
        **os.environ,
        **SETTINGS,
        "XDG_CONFIG_HOME": settings,
        "XDG_RUNTIME_DIR": str(folder),
    }
    process = start_resident({**environment, "TRIVET_PATH": str(folder / "first.db")})
    yield folder
    stop_resident(process)
    shutil.rmtree(folder)


@pytest.fixture
def warm(shared_folder: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home where the shared resident process runs."""
    _set(monkeypatch, shared_folder, path)
    return Home(shared_folder, path)


def _set(monkeypatch: pytest.MonkeyPatch, folder: Path, path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setenv("XDG_DATA_HOME", str(path.parent / "data"))
    monkeypatch.setenv("TRIVET_PATH", str(path))
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
