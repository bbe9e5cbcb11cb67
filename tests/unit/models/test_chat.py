"""What is read out of the answers of small models, which say more than they were asked for."""

from __future__ import annotations

from typing import Any

import pytest

from trivet.models.chat import BadAnswer, _text, _value

ANSWER = {"queries": ["a {b}"]}
JSON = '{"queries": ["a {b}"]}'


@pytest.mark.parametrize(
    "said",
    [
        JSON,
        f"```json\n{JSON}\n```",
        f"Here are the {{queries}} you want:\n\n```\n{JSON}\n```\nI hope this helps!",
        f"{JSON}\n{JSON}",
    ],
)
def test_chatter_around_the_json_is_forgiven(said: str) -> None:
    assert _value(said, cut_off=False) == ANSWER


@pytest.mark.parametrize("said", ["I cannot do that.", "", "{" * 100_000, '{"queries": ['])
def test_an_answer_without_json_is_none(said: str) -> None:
    with pytest.raises(BadAnswer, match="not JSON"):
        _value(said, cut_off=False)


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ('{"queries": ["a", "b, \\"c]", "a", "a', {"queries": ["a", 'b, "c]', "a"]}),
        (
            '{"grades": [{"text": 1, "grade": 0}, {"text": 2, "gr',
            {"grades": [{"text": 1, "grade": 0}]},
        ),
        ('{"of": [{"a": [1, 2], "b": [3, 4', {"of": [{"a": [1, 2], "b": [3]}]}),
    ],
)
def test_of_an_answer_that_broke_off_the_whole_entries_are_read(said: str, read: Any) -> None:
    answer = {"message": {"content": said}, "finish_reason": "length"}
    assert _value(*_text({"choices": [answer]})) == read


def test_an_answer_that_broke_off_before_its_first_entry_says_so() -> None:
    with pytest.raises(BadAnswer, match="broke off"):
        _value('{"queries": ["a', cut_off=True)
