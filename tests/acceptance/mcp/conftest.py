from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.mcp_agent import Agent, agent


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """One server shared by all tests of a file."""
    with agent(tmp_path_factory.mktemp("store") / "memory.db") as connected:
        yield connected
