"""What the tests of parsing share: all grammars are unpacked in one pass, once a machine."""

from __future__ import annotations

import pytest

from trivet.code.parse.parsers import GRAMMARS, unpack_grammars


@pytest.fixture(scope="session", autouse=True)
def grammars() -> None:
    unpack_grammars(GRAMMARS)
