from __future__ import annotations

import pytest

from trivet.adapters.scope_labels import as_label, from_label
from trivet.contract import Remember, check


@pytest.mark.parametrize("text", ["plain", "a/b", "user.41.", "ünïcode 火", "a.b", "..", "\U0001f600", "a\nb"])
def test_a_text_comes_back_and_is_a_scope(text: str) -> None:
    assert from_label(as_label(text)) == text
    assert check(Remember, {"content": "x", "scope": f"top/{as_label(text)}"}).scope == f"top/{as_label(text)}"
