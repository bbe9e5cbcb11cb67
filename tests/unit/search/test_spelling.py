"""Typo detection recognizes single keyboard slips."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.search.query import is_typo, typos_of


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("vualt", "vault"),  # swapped
        ("paht", "path"),
        ("secrts", "secrets"),  # missing
        ("bloood", "blood"),  # too many
        ("warehause", "warehouse"),  # wrong
        ("deploi", "deploy"),  # at the end
        ("deploy", "deploys"),
    ],
)
def test_single_typo_is_recognized(typed: str, meant: str) -> None:
    assert is_typo(typed, meant, len(typed))
    assert is_typo(meant, typed, len(typed))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("vault", "vault"),
        ("boat", "boot"),  # short words are similar without being typos
        ("boat", "bat"),
        ("harbour", "harvest"),
        ("vautl", "vualt"),
        ("abcd", "abcdef"),
    ],
)
def test_different_words_are_not_typos(typed: str, meant: str) -> None:
    assert not is_typo(typed, meant, len(typed))


def test_typo_limit_depends_on_word_length() -> None:
    assert is_typo("alow", "allow", len("alowed"))
    assert not is_typo("alow", "allow", len("alow"))


@given(st.text("abc", min_size=1, max_size=6), st.text("abc", max_size=7))
def test_typos_of_covers_every_recognized_typo(typed: str, meant: str) -> None:
    if is_typo(typed, meant, 99):
        assert meant in set(typos_of(typed))
