"""Two statements count as the same only when no detail differs."""

from __future__ import annotations

import pytest

from trivet.memory.propose import SAME_MEANING_NEARNESS, is_rewording, is_same_statement

NEAR = SAME_MEANING_NEARNESS + 0.1


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (
            "The staging database listens on port 6543.",
            "The staging database listens on port 6544.",
        ),
        ("We deploy on Friday.", "We deploy on Thursday."),
        ("The office in Bremen has the keys.", "The office in Lisbon has the keys."),
        ("Set retry_limit before the run.", "Set retry_delay before the run."),
        ("Always deploy in the evening.", "Never deploy in the evening."),
        ("She prefers tabs over spaces.", "She prefers spaces over tabs."),
    ],
)
def test_different_detail_is_not_same_however_near(new: str, old: str) -> None:
    assert not is_same_statement(new, old, NEAR)
    assert not is_same_statement(old, new, NEAR)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("We deploy on Friday.", "we deploy on friday"),
        ("User: We deploy on Friday.", "We deploy on Friday."),
        ("The office keeps the keys.", "The office keeps the spare keys."),
    ],
)
def test_nothing_new_is_same(new: str, old: str) -> None:
    assert is_same_statement(new, old)


def test_paraphrase_needs_near_vectors() -> None:
    new, old = "The office keeps the keys safe.", "The office keeps the keys locked."
    assert is_same_statement(new, old, NEAR)
    assert not is_same_statement(new, old, SAME_MEANING_NEARNESS - 0.1)
    assert not is_same_statement(new, old)


def test_changed_value_is_rewording_but_other_subject_is_not() -> None:
    assert is_rewording(
        "The staging database listens on port 6543.", "The staging database listens on port 6544."
    )
    assert not is_rewording(
        "The staging database listens on port 6543.", "Ines leads the harbour office."
    )
    assert not is_rewording("We deploy on Friday.", "we deploy on friday")
