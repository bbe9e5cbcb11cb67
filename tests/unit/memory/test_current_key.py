"""A caller can inspect and revoke the key in use."""

from __future__ import annotations

from pathlib import Path

import pytest

from trivet import InvalidInput, Trivet
from trivet.errors import Unauthorised
from trivet.serve.http.tenants import Tenants
from trivet.settings import Settings


def test_caller_sees_and_revokes_own_key(path: Path) -> None:
    tenants = Tenants(Settings(path=str(path), embedder="none", background=False, changes="off"))
    try:
        key, other = (
            tenants.make_key("ana", "reader", ("read",), "page"),
            tenants.make_key("ana", "reader"),
        )
        ana = tenants.trivet(tenants.caller(key))
        found = ana.own_key()
        assert (found.user, found.rights, found.label, found.expires_at) == (
            "ana",
            ("read",),
            "page",
            None,
        )
        ana.sign_out()
        with pytest.raises(Unauthorised):
            tenants.caller(key)
        assert tenants.caller(other).user == "ana"
    finally:
        tenants.close()


def test_store_owner_has_no_key(trivet: Trivet) -> None:
    for call in (trivet.own_key, trivet.sign_out):
        with pytest.raises(InvalidInput, match="own store"):
            call()
