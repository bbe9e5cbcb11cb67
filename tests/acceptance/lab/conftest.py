from __future__ import annotations

from pathlib import Path

import pytest

from support import library_dataset as library
from support.command_line import CommandLine
from support.lab_fixtures import config, filled, folder, memory, runs, store

__all__ = ["config", "filled", "folder", "memory", "runs", "store"]

CONFIGS = ("default", "rrf(k=60)", "rrf | legs(lexical)")


@pytest.fixture
def trivet(monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    return CommandLine(monkeypatch)


@pytest.fixture(scope="session")
def arms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three arms on the small test set and a sweep, made once by the real commands."""
    base = tmp_path_factory.mktemp("arms")
    data, out = str(library.write(base / "data")), base / "runs"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(base / "cache"))
        run = CommandLine(patch)
        configs = [word for config in CONFIGS for word in ("--config", config)]
        ran = run("lab", "run", data, *configs, "--out", str(out))
        assert (ran.status, ran.err) == (0, "")
        recipe = "rrf(k={k}, lexical={w})"
        swept = run(
            "lab",
            "sweep",
            data,
            "--recipe",
            recipe,
            "--vary",
            "k=10,60",
            "--vary",
            "w=1,2",
            "--out",
            str(out / "rrf.json"),
        )
        assert (swept.status, swept.err) == (0, "")
    return out
