"""Source code mentions what it defines, not what it calls."""

from __future__ import annotations

import pytest

from trivet.graph.extract import definitions, extract, split_code


def names(content: str) -> set[str]:
    return {mention.name for mention in extract(None, content)}


FUNCTION = """\
def load_config(path):
    settings = ConfigParser()
    settings.read(path)
    return settings
"""


def test_fenced_code_is_split_from_prose() -> None:
    prose, code = split_code(f"Ask Alice.\n```python\n{FUNCTION}```\nThen Bob.")
    assert "Alice" in prose
    assert "Bob" in prose
    assert "ConfigParser" not in prose
    assert code.strip() == FUNCTION.strip()


@pytest.mark.parametrize("fence", ["```", "~~~", "  ```"])
def test_unclosed_fence_extends_to_end(fence: str) -> None:
    prose, code = split_code(f"Ask Alice.\n{fence}\n{FUNCTION}")
    assert "load_config" not in prose
    assert "load_config" in code


def test_nested_fence_is_code() -> None:
    _, code = split_code("~~~\n```\ndef inner(): ...\n```\n~~~\nafter")
    assert "def inner" in code


def test_code_mentions_only_definitions() -> None:
    assert names(FUNCTION) == {"loadconfig"}
    assert names(f"```\n{FUNCTION}```") == {"loadconfig"}
    (mention,) = extract(None, FUNCTION)
    assert (mention.label, mention.kind, mention.role) == ("load_config", "identifier", "about")


def test_unfenced_code_is_detected_by_lines() -> None:
    snippet = "x = Thing()\nfor item in Basket:\n    item.push(Other)\nprint(x)\n"
    assert names(snippet) == set()
    assert names("We use Thing a lot.\nThe Basket holds them.\nAlways ask Alice first.") >= {
        "basket",
        "alice",
    }


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("class UserStore:\n    pass", ["UserStore"]),
        ("async def fetch_all(x):", ["fetch_all"]),
        ("export default function renderPage() {", ["renderPage"]),
        ("public static class Main {", ["Main"]),
        ("fn parse_line(s: &str) -> u8 {", ["parse_line"]),
        ("func ServeHTTP(w http.ResponseWriter) {", ["ServeHTTP"]),
        ("struct Point { x: i32 }", ["Point"]),
        ("CREATE TABLE memory (key INTEGER);", ["memory"]),
        ("interface Shape {}\ntype Alias = string;", ["Shape", "Alias"]),
        ("default = undefined\nclassify(it)", []),
        ("def f(x): ...", []),
    ],
)
def test_definitions(code: str, expected: list[str]) -> None:
    assert definitions(code) == expected


def test_prose_is_not_taken_for_code() -> None:
    for text in (
        "Alice said: let us go for a walk; Bob agreed.",
        "return to sender",
        "Class of 1999 met in Berlin.",
        "If Bob calls, ask for Carol.",
    ):
        assert split_code(text) == (text, "")
