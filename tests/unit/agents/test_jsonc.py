"""Edits of JSONC settings files keep all untouched text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.agents.install.jsonc import append, parse, put, remove
from trivet.errors import InvalidInput

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=6), VALUES, max_size=4)
SPACINGS = st.sampled_from([None, 2, 4, "\t"])


@given(OBJECTS, SPACINGS, st.text(max_size=6), VALUES)
def test_put_and_remove(before: dict[str, Any], indent: Any, key: str, value: Any) -> None:
    text = json.dumps(before, indent=indent, ensure_ascii=False)
    assert parse(text).value == before
    changed = put(text, ["outer " + key, key], value)
    assert parse(changed).value == {
        **before,
        "outer " + key: {**_object(before, "outer " + key), key: value},
    }
    assert parse(remove(changed, ["outer " + key])).value == {
        k: v for k, v in before.items() if k != "outer " + key
    }


@given(st.lists(VALUES, max_size=4), SPACINGS, VALUES)
def test_append_and_remove_items(before: list[Any], indent: Any, value: Any) -> None:
    text = json.dumps({"a": 1, "list": before}, indent=indent)
    changed = append(text, ["list"], value)
    assert parse(changed).value == {"a": 1, "list": [*before, value]}
    for index in range(len(before) + 1):
        left = [*before, value]
        del left[index]
        assert parse(remove(changed, ["list"], index)).value == {"a": 1, "list": left}


def _object(value: dict[str, Any], key: str) -> dict[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


COMMENTED = """\
// My settings
{
    "theme": "dark", // at night
    /* servers */
    "servers": {
        "one": {"url": "http://x/*y"}, // the first
    },
    "list": [
        1, // one
        2 // two
    ] // the end
}
"""


def test_comments_and_trailing_commas_are_kept() -> None:
    changed = put(COMMENTED, ["servers", "two"], {"command": "x"})
    assert changed == COMMENTED.replace(
        "// the first\n",
        '// the first\n        "two": {\n            "command": "x"\n        },\n',
    )
    changed = append(COMMENTED, ["list"], 3)
    assert changed == COMMENTED.replace("2 // two\n", "2, // two\n        3\n")
    assert remove(put(COMMENTED, ["servers", "two"], 2), ["servers", "two"]) == COMMENTED
    assert remove(put(COMMENTED, ["last"], {"x": 1}), ["last"]) == COMMENTED
    assert (
        remove(COMMENTED, ["servers"]).count("//") == COMMENTED.count("//") - 2
    )  # The removed object held two comments.
    assert remove(COMMENTED, ["list"], 0) == COMMENTED.replace("1, // one", "// one")
    assert parse(remove('{"a": 1, // c\n"b": 2}', ["b"])).value == {"a": 1}


def test_empty_file_is_an_empty_object() -> None:
    assert parse(put("", ["a"], 1)).value == {"a": 1}
    assert parse(put("// only words\n", ["a"], 1)).value == {"a": 1}


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ('{"a": 1', "line 1, column 8"),
        ('{"a" 1}', "line 1, column 6: expected a colon"),
        ("{\n  a: 1}", "line 2, column 3: expected a key in double quotes"),
        ('{"a": 1} x', "expected the end"),
        ('{"a": 1 "b": 2}', "line 1, column 9"),
        ('{"a": tru}', "a value"),
        ("[,]", "a value"),
        ("[" * 300, "nested too deeply"),
        ('{"a": "\\x"}', "bad escape"),
    ],
)
def test_syntax_error_is_reported_with_its_position(text: str, position: str) -> None:
    with pytest.raises(InvalidInput, match=position):
        parse(text)
