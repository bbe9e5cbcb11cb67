"""Any value of JSON goes into a memory's content and comes back exactly."""

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


def exactly(value: Any) -> str:
    """Tells 1 from 1.0 and True, and one order of fields from another."""
    return repr(value)


@given(draw.dictionaries(TEXTS | draw.sampled_from(["text", "food", "a.b-c"]), VALUES, max_size=4))
def test_what_goes_in_comes_out(value: dict[str, Any]) -> None:
    text = encode(value)
    assert exactly(decode(text)) == exactly(value)
    assert "\0" not in text  # which no memory may hold


def test_people_and_search_read_plain_lines() -> None:
    value = {"food": "pizza with olives", "since": 2024, "with": ["Ana"], "note": "two\nlines"}
    assert (
        encode(value) == 'food: pizza with olives\nsince: 2024\nwith: ["Ana"]\nnote: "two\\nlines"'
    )


@pytest.mark.parametrize(
    "value", [{"a": (1, 2)}, {"a": [{1: 2}]}, {"a": float("nan")}, {"a": object()}, {"a": b""}]
)
def test_what_would_come_back_otherwise_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="would not come back"):
        encode(value)


def test_what_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a memory holds up to"):
        encode({"a": "é" * 20_000})


def test_a_private_mark_is_closed_in_its_field() -> None:
    encode({"a": "<private>hush</private>", "b": 1})
    with pytest.raises(InvalidInput, match="reaches from one field into the next"):
        encode({"a": "<private>hush", "b": 1})


def test_a_text_of_somebody_else_is_content() -> None:
    assert decode("No fields here.") == {"content": "No fields here."}
    assert decode("{broken") == {"content": "{broken"}
