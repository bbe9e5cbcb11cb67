from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.served_stores import Houses, houses, key_of
from trivet import Trivet
from trivet.serve.http.tenants import Tenants

from .tcp_proxy import TcpProxy, proxied


@pytest.fixture(scope="module")
def running() -> Iterator[Houses]:
    with houses() as opened:
        yield opened


@pytest.fixture
def house_at(running: Houses, path: Path, empty_store: Path) -> Iterator[tuple[str, Tenants]]:
    shutil.copy(empty_store, path)
    with running.at(path, embedder="none", background=False) as opened:
        yield opened


@pytest.fixture
def address(house_at: tuple[str, Tenants]) -> str:
    """Address of the test's own server, with a path as behind a proxy."""
    return house_at[0]


@pytest.fixture
def key(house_at: tuple[str, Tenants]) -> str:
    return key_of(house_at[1])


@pytest.fixture
def network(address: str) -> Iterator[TcpProxy]:
    with proxied(address) as opened:
        yield opened


@pytest.fixture
def trivet(network: TcpProxy, key: str) -> Iterator[Trivet]:
    """A client whose traffic all passes through the proxy."""
    with Trivet.open(network.address, key=key) as opened:
        yield opened
