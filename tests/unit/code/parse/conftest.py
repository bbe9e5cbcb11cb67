"""Fixtures of the parser tests: all grammars are unpacked once per machine."""

from __future__ import annotations

import pytest

from trivet.code.parse.parsers import GRAMMARS, unpack_grammars


@pytest.fixture(scope="session", autouse=True)
def grammars() -> None:
    unpack_grammars(GRAMMARS)
