"""Shared setup that isolates tests from the user and makes generated examples reproducible."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from support.store_fixtures import ARTIFACTS, empty_store

if TYPE_CHECKING:
    from support.postgres_server import PostgresServer

__all__ = ["empty_store"]

# No deadline, because a busy machine is not a failure. Derandomized, so that failures repeat.
settings.register_profile(
    "trivet",
    deadline=None,
    derandomize=True,
    max_examples=60,  # with 30, a fault that 60 find went unnoticed (docs/results/mutation.md)
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "quick", settings.get_profile("trivet"), max_examples=10
)  # make quick; make test has all
settings.register_profile("thorough", settings.get_profile("trivet"), max_examples=600)  # make soak
settings.load_profile("trivet")
# More than ten times the slowest test; stops tests that would hang.
TEST_SECONDS = 300


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Freeze imported and collected objects, which live as long as the process.

    Scanning them for garbage took a quarter of the collection time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        # Rarer collections save one second in thirty.
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    def hanging(number: int, frame: FrameType | None) -> None:
        pytest.fail(f"{item.nodeid} has not ended after {TEST_SECONDS} s")

    before = signal.signal(signal.SIGALRM, hanging)
    signal.alarm(TEST_SECONDS)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session", autouse=True)
def _own_home_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A home for a server that several tests share and that starts before the first of them."""
    with pytest.MonkeyPatch.context() as patch:
        _move_home(tmp_path_factory, patch)
        yield


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    _move_home(tmp_path_factory, monkeypatch)


def _move_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TRIVET_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TRIVET_SECRETS_KEYRING", "false")  # do not touch the user's own keyring
    monkeypatch.setenv(
        "TRIVET_CHANGES", "off"
    )  # comparing each save would take minutes of the suite
    home = tmp_path_factory.getbasetemp() / "home"
    monkeypatch.setenv("TRIVET_CODE_CACHE", str(home / "code"))
    monkeypatch.setenv("TRIVET_INDEX_CACHE", str(home / "index"))
    # The last one is the resident process's folder, so that the user's own is not found.
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(home / name.lower()))
    # Library caches (grammars, fonts) stay in the checkout and are built once.
    monkeypatch.setenv("XDG_CACHE_HOME", str(ARTIFACTS / "cache"))
    monkeypatch.setenv("MPLCONFIGDIR", str(ARTIFACTS / "matplotlib"))


@pytest.fixture(autouse=True)
def _no_endpoint_of_another_test() -> Iterator[None]:
    """Forget which endpoints are silent; this is process-wide and would affect later tests."""
    yield
    if (known := sys.modules.get("trivet.common.breaker")) is not None:
        known.reset_breakers()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the test's store."""
    return tmp_path / "memory.db"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One real server for all tests of a process."""
    from support.postgres_server import PostgresServer

    server = PostgresServer()
    yield server
    server.remove()
