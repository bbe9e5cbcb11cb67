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


def test_of_an_answer_that_broke_off_no_part_is_taken_for_the_whole() -> None:
    answer: Any = {"message": {"content": '{"grades": [{"text": 1}, {"te'}, "finish_reason": "length"}
    with pytest.raises(BadAnswer, match="broke off"):
        _value(*_text({"choices": [answer]}))
