"""Spelling variants of one name map to one canonical name, and different names stay apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.graph.concepts import LONGEST_NAME, canonical, form, singular


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Li Hua", "LiHua"),
        ("U.S.", "US"),
        ("get_user", "getUser"),
        ("get-user", "get_user"),
        ("Alice's", "Alice"),
        ("Alice’s", "Alice"),
        ("James'", "James"),
        ("the Beatles", "Beatles"),
        ("The Beatles", "beatles"),
        ("José", "Jose"),
        ("Straße", "STRASSE"),
        ("ＡＢＣ", "abc"),
        ("O'Brien", "O’Brien"),
        ("  New   York ", "new york"),
        ("e-mail", "email"),
        ("C++'s", "C++"),
    ],
)
def test_variants_share_canonical_name(one: str, other: str) -> None:
    assert canonical(one) == canonical(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C", "C++"),
        ("C", "C#"),
        ("C++", "C#"),
        ("3.5", "35"),
        ("GPT-3.5", "GPT-35"),
        ("1.2", "12"),
        ("v1.12", "v11.2"),
        ("2024-03-05", "20240305"),
        ("F#", "F"),
        ("Theodore", "odore"),
        ("Alice", "Alices"),
    ],
)
def test_different_names_stay_apart(one: str, other: str) -> None:
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize(
    "one",
    "test tag release database story box branch dish movie cookie cache class process address alias index door".split(),
)
def test_plural_matches_singular(one: str) -> None:
    ending = "es" if one.endswith(("s", "x", "ch", "sh")) else "s"
    many = f"{one[:-1]}ies" if one.endswith("ory") else one + ending
    assert canonical(singular(many)) == canonical(singular(one))
    assert canonical(singular(f"blue {many}")) == canonical(singular(f"blue {one}"))


@pytest.mark.parametrize(
    "name",
    ["Adams", "Paris", "status", "analysis", "access", "postgres", "series", "aws", "ios", "dns"],
)
def test_plural_lookalikes_are_unchanged(name: str) -> None:
    assert singular(name) == name


def test_form_keeps_words_separate() -> None:
    assert form("The Bank of America's") == "bank of america"
    assert form("Li Hua") == "li hua" != form("LiHua") == "lihua"
    assert form("J. K. Rowling") == "j k rowling"
    assert form("C++ and C#") == "cplusplus and csharp"


def test_overlong_or_empty_text_has_no_name() -> None:
    assert canonical("a" * LONGEST_NAME) == "a" * LONGEST_NAME
    assert canonical("a" * (LONGEST_NAME + 1)) == ""
    assert canonical("...") == canonical("") == ""


@given(st.text(max_size=120))
def test_canonical_names_are_bounded_and_stable(text: str) -> None:
    name = canonical(text)
    assert len(name) <= LONGEST_NAME
    assert all(character.isalnum() for character in name) or not name.isascii()
    assert not any(character.isspace() for character in name)
    assert canonical(text) == name


@given(st.text(max_size=60))
def test_form_and_text_share_canonical_name(text: str) -> None:
    """Queries are looked up by form and memories are stored by name, so the two must agree."""
    assert canonical(form(text)) in (canonical(text), canonical(form(form(text))))
    assert form(text) == " ".join(form(text).split())
