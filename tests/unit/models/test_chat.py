"""JSON is extracted from model responses that contain extra text or are cut off."""

from __future__ import annotations

from typing import Any

import pytest

from trivet.models.chat import BadAnswer, _text, _value

ANSWER = {"queries": ["a {b}"]}
JSON = '{"queries": ["a {b}"]}'


@pytest.mark.parametrize(
    "response",
    [
        JSON,
        f"```json\n{JSON}\n```",
        f"Here are the {{queries}} you want:\n\n```\n{JSON}\n```\nI hope this helps!",
        f"{JSON}\n{JSON}",
    ],
)
def test_text_around_json_is_ignored(response: str) -> None:
    assert _value(response, cut_off=False) == ANSWER


@pytest.mark.parametrize("response", ["I cannot do that.", "", "{" * 100_000, '{"queries": ['])
def test_response_without_json_is_rejected(response: str) -> None:
    with pytest.raises(BadAnswer, match="not JSON"):
        _value(response, cut_off=False)


@pytest.mark.parametrize(
    ("response", "read"),
    [
        ('{"queries": ["a", "b, \\"c]", "a", "a', {"queries": ["a", 'b, "c]', "a"]}),
        (
            '{"grades": [{"text": 1, "grade": 0}, {"text": 2, "gr',
            {"grades": [{"text": 1, "grade": 0}]},
        ),
        ('{"of": [{"a": [1, 2], "b": [3, 4', {"of": [{"a": [1, 2], "b": [3]}]}),
    ],
)
def test_truncated_response_keeps_complete_entries(response: str, read: Any) -> None:
    answer = {"message": {"content": response}, "finish_reason": "length"}
    assert _value(*_text({"choices": [answer]})) == read


def test_truncated_response_without_entries_is_rejected() -> None:
    with pytest.raises(BadAnswer, match="cut off"):
        _value('{"queries": ["a', cut_off=True)
