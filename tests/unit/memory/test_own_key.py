"""The key that a caller came with: what it allows, and its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from trivet import InvalidInput, Trivet
from trivet.errors import Unauthorised
from trivet.serve.http.tenants import Tenants
from trivet.settings import Settings


def test_a_caller_sees_their_key_and_gives_it_back(path: Path) -> None:
    house = Tenants(Settings(path=str(path), embedder="none", background=False, changes="off"))
    try:
        key, other = (
            house.make_key("ana", "reader", ("read",), "page"),
            house.make_key("ana", "reader"),
        )
        ana = house.trivet(house.caller(key))
        found = ana.own_key()
        assert (found.user, found.rights, found.label, found.expires_at) == (
            "ana",
            ("read",),
            "page",
            None,
        )
        ana.sign_out()
        with pytest.raises(Unauthorised):
            house.caller(key)
        assert house.caller(other).user == "ana"
    finally:
        house.close()


def test_the_owner_of_a_store_has_no_key(trivet: Trivet) -> None:
    for ask in (trivet.own_key, trivet.sign_out):
        with pytest.raises(InvalidInput, match="own store"):
            ask()
