from __future__ import annotations

import pytest

from support.store_fixtures import Opened, configuration, open_trivet, trivet

__all__ = ["Opened", "configuration", "open_trivet", "trivet"]


@pytest.fixture(autouse=True)
def _own_keys(configuration: object) -> None:
    """Give each test its own keys."""
