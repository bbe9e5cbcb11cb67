"""Questions that ask for two things are split; those that do not are left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.memory.answer.expansion.rules import MOST, parts_of


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("Which is older, Rome or Athens?", ("Which is older Rome", "Which is older Athens")),
        ("who wrote Hush and when was Hush published?", ("who wrote Hush", "when was Hush published?")),
        ("Compare postgres with sqlite", ("postgres", "sqlite")),
        ("postgres vs. sqlite?", ("postgres", "sqlite")),
        (
            "What is the difference between BM25 and cosine in short texts?",
            ("What is the BM25 in short texts", "What is the cosine in short texts"),
        ),
        ("Where is the key? Who keeps the spare key?", ("Where is the key?", "Who keeps the spare key?")),
    ],
)
def test_split(query: str, parts: tuple[str, ...]) -> None:
    assert parts_of(query) == parts


@pytest.mark.parametrize(
    "query",
    [
        "",
        "salt and pepper",
        "the staging port",
        "What did Anna and Ben cook together?",
        'who wrote "Pride and Prejudice" and "Is it you?"',
        "is it so and is it there",
        "and or but?",
    ],
)
def test_left_alone(query: str) -> None:
    assert parts_of(query) == ()


@given(st.text(max_size=300) | st.text(alphabet="who and which or between, vs? compare a b", max_size=2_000))
def test_any_text_is_split_into_few_parts_or_none(text: str) -> None:
    parts = parts_of(text)
    assert len(parts) in (0, *range(2, MOST + 1))
    assert len(set(parts)) == len(parts)
    assert all(part.strip() for part in parts)


def test_a_query_as_long_as_may_be_is_read_in_no_time() -> None:
    for piece in ("between a and ", "x, ", "who and who ", "a or ", "compare "):
        assert parts_of((piece * 8_000)[:8_000]) == ()
