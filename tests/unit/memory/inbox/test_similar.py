"""Whether two statements say the same. In doubt they do not."""

from __future__ import annotations

import pytest

from trivet.memory.inbox.similar import SAME_MEANING, replaces, says_the_same

NEAR = SAME_MEANING + 0.1


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("The staging database listens on port 6543.", "The staging database listens on port 6544."),
        ("We deploy on Friday.", "We deploy on Thursday."),
        ("The office in Bremen has the keys.", "The office in Lisbon has the keys."),
        ("Set retry_limit before the run.", "Set retry_delay before the run."),
        ("Always deploy in the evening.", "Never deploy in the evening."),
        ("She prefers tabs over spaces.", "She prefers spaces over tabs."),
    ],
)
def test_what_differs_in_a_particular_says_something_else_however_near(new: str, old: str) -> None:
    assert not says_the_same(new, old, NEAR)
    assert not says_the_same(old, new, NEAR)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("We deploy on Friday.", "we deploy on friday"),
        ("User: We deploy on Friday.", "We deploy on Friday."),
        ("The office keeps the keys.", "The office keeps the spare keys."),
    ],
)
def test_what_adds_nothing_says_the_same(new: str, old: str) -> None:
    assert says_the_same(new, old)


def test_a_paraphrase_needs_near_vectors() -> None:
    new, old = "The office keeps the keys safe.", "The office keeps the keys locked."
    assert says_the_same(new, old, NEAR)
    assert not says_the_same(new, old, SAME_MEANING - 0.1)
    assert not says_the_same(new, old)


def test_an_exchanged_value_replaces_and_another_subject_does_not() -> None:
    assert replaces("The staging database listens on port 6543.", "The staging database listens on port 6544.")
    assert not replaces("The staging database listens on port 6543.", "Ines leads the harbour office.")
    assert not replaces("We deploy on Friday.", "we deploy on friday")
