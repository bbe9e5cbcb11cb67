"""Which two words are a slip of the keyboard apart."""

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
def test_a_slip_is_known(typed: str, meant: str) -> None:
    assert is_typo(typed, meant, len(typed))
    assert is_typo(meant, typed, len(typed))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("vault", "vault"),
        ("boat", "boot"),  # short words are near each other without being meant
        ("boat", "bat"),
        ("harbour", "harvest"),
        ("vautl", "vualt"),
        ("abcd", "abcdef"),
    ],
)
def test_other_words_are_not(typed: str, meant: str) -> None:
    assert not is_typo(typed, meant, len(typed))


def test_a_short_stem_counts_where_the_word_is_long() -> None:
    assert is_typo("alow", "allow", len("alowed"))
    assert not is_typo("alow", "allow", len("alow"))


@given(st.text("abc", min_size=1, max_size=6), st.text("abc", max_size=7))
def test_every_slip_is_among_those_that_are_looked_for(typed: str, meant: str) -> None:
    if is_typo(typed, meant, 99):
        assert meant in set(typos_of(typed))
