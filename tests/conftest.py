"""What every suite shares: no test sees the user's own settings or store; generated examples are the same each run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from support.postgres_server import PostgresServer

# No deadline: a busy machine is not a failure. Derandomised: a red run is red again.
settings.register_profile(
    "trivet",
    deadline=None,
    derandomize=True,
    max_examples=150,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("trivet")


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TRIVET_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TRIVET_SECRETS_KEYRING", "false")  # the user's own keyring stays his
    home = tmp_path_factory.getbasetemp() / "home"
    # The last is where a resident process would be: none of the user's own is found.
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(home / name.lower()))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test's store is."""
    return tmp_path / "memory.db"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One real server for all tests of a process."""
    from support.postgres_server import PostgresServer

    server = PostgresServer()
    yield server
    server.remove()
