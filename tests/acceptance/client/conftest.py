from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.served_stores import ServedStores, key_of, serve_stores
from trivet import Trivet
from trivet.serve.http.tenants import Tenants

from .tcp_proxy import TcpProxy, proxied


@pytest.fixture(scope="module")
def running() -> Iterator[ServedStores]:
    with serve_stores() as opened:
        yield opened


@pytest.fixture
def served_at(
    running: ServedStores, path: Path, empty_store: Path
) -> Iterator[tuple[str, Tenants]]:
    shutil.copy(empty_store, path)
    with running.at(path, embedder="none", background=False) as opened:
        yield opened


@pytest.fixture
def address(served_at: tuple[str, Tenants]) -> str:
    """Address of the test's own server, with a path as behind a proxy."""
    return served_at[0]


@pytest.fixture
def key(served_at: tuple[str, Tenants]) -> str:
    return key_of(served_at[1])


@pytest.fixture
def network(address: str) -> Iterator[TcpProxy]:
    with proxied(address) as opened:
        yield opened


@pytest.fixture
def trivet(network: TcpProxy, key: str) -> Iterator[Trivet]:
    """A client whose traffic all passes through the proxy."""
    with Trivet.open(network.address, key=key) as opened:
        yield opened
