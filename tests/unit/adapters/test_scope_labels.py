"""Scope labels encode any text as a scope segment and restore it exactly."""

from __future__ import annotations

import pytest

from trivet.adapters.shared import decode_scope_label, encode_scope_label
from trivet.contract import Remember, check


@pytest.mark.parametrize(
    "text", ["plain", "a/b", "user.41.", "ünïcode 火", "a.b", "..", "\U0001f600", "a\nb"]
)
def test_text_round_trips_as_a_valid_scope(text: str) -> None:
    assert decode_scope_label(encode_scope_label(text)) == text
    assert (
        check(Remember, {"content": "x", "scope": f"top/{encode_scope_label(text)}"}).scope
        == f"top/{encode_scope_label(text)}"
    )
