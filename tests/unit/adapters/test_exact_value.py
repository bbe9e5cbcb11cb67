"""Any JSON value fits into a memory's content and is restored exactly."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as draw

from trivet import InvalidInput
from trivet.adapters.shared import decode, encode

SCALARS = (
    draw.none()
    | draw.booleans()
    | draw.integers()
    | draw.floats(allow_nan=False, allow_infinity=False)
)
TEXTS = draw.text(draw.characters(exclude_categories=["Cs"])) | draw.sampled_from(
    [
        "a: b",
        " blank",
        "1",
        "true",
        "NaN",
        '"quoted"',
        "[1",
        "{}",
        "two\nlines",
        "key: value\nother: 2",
        "é\u2028\r",
        "\0",
    ]
)
VALUES = draw.recursive(
    SCALARS | TEXTS,
    lambda inner: draw.lists(inner, max_size=3) | draw.dictionaries(TEXTS, inner, max_size=3),
)


def exact_repr(value: Any) -> str:
    """Distinguish 1, 1.0, and True, and different field orders."""
    return repr(value)


@given(draw.dictionaries(TEXTS | draw.sampled_from(["text", "food", "a.b-c"]), VALUES, max_size=4))
def test_value_round_trips_exactly(value: dict[str, Any]) -> None:
    text = encode(value)
    assert exact_repr(decode(text)) == exact_repr(value)
    assert "\0" not in text  # No memory may hold NUL.


def test_encoded_value_is_plain_lines() -> None:
    value = {"food": "pizza with olives", "since": 2024, "with": ["Ana"], "note": "two\nlines"}
    assert (
        encode(value) == 'food: pizza with olives\nsince: 2024\nwith: ["Ana"]\nnote: "two\\nlines"'
    )


@pytest.mark.parametrize(
    "value", [{"a": (1, 2)}, {"a": [{1: 2}]}, {"a": float("nan")}, {"a": object()}, {"a": b""}]
)
def test_value_that_cannot_round_trip_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="cannot be stored"):
        encode(value)


def test_oversized_value_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a memory holds at most"):
        encode({"a": "é" * 20_000})


def test_private_tag_must_close_in_its_field() -> None:
    encode({"a": "<private>hush</private>", "b": 1})
    with pytest.raises(InvalidInput, match="spans several fields"):
        encode({"a": "<private>hush", "b": 1})


def test_foreign_text_becomes_content() -> None:
    assert decode("No fields here.") == {"content": "No fields here."}
    assert decode("{broken") == {"content": "{broken"}
