"""Edits JSON with comments as text, so that everything else keeps its blanks and comments."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from trivet.errors import InvalidInput

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_INDENT = re.compile(r"\n([ \t]+)\S")
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
DEEPEST = 200  # deeper nesting would exhaust the stack


class Node(msgspec.Struct, frozen=True):
    """A value and its position; `items` are key (empty in an array), start and node."""

    value: Any
    start: int
    stop: int
    items: tuple[tuple[str, int, Node], ...] = ()

    def member(self, key: str) -> Node | None:
        return next((node for name, _, node in reversed(self.items) if name == key), None)


def parse(text: str) -> Node:
    start = _skip(text, 1 if text.startswith("\ufeff") else 0)
    if start == len(text):
        return Node({}, start, start)
    node = _value(text, start, 0)
    if _skip(text, node.stop) != len(text):
        raise _wrong(text, _skip(text, node.stop), "expected the end of the file")
    return node


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Set a value at a path of keys; missing objects are created."""
    node, depth = _nearest(text, path)
    if depth == len(path):
        return _replaced(text, node, value)
    for key in reversed(path[depth + 1 :]):
        value = {key: value}
    return _inserted(text, node, f"{json.dumps(path[depth], ensure_ascii=False)}: ", value)


def append(text: str, path: Sequence[str], value: Any) -> str:
    node, depth = _nearest(text, path)
    if depth < len(path):
        return put(text, path, [value])
    if not isinstance(node.value, list):
        raise InvalidInput(f"{'.'.join(path)} is not a list. Fix it first; nothing was changed.")
    return _inserted(text, node, "", value)


def remove(text: str, path: Sequence[str], index: int | None = None) -> str:
    """Remove the member at a path, or an item of its array."""
    node, depth = _nearest(text, path if index is not None else path[:-1])
    number = index if index is not None else _last_index(node, path[-1])
    if depth < len(path) - (index is None) or number is None:
        return text
    return _without(text, node, number)


def _last_index(node: Node, key: str) -> int | None:
    return next(
        (number for number in reversed(range(len(node.items))) if node.items[number][0] == key),
        None,
    )


def _nearest(text: str, path: Sequence[str]) -> tuple[Node, int]:
    node = parse(text)
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict):
            where = ".".join(path[:depth]) or "the whole file"
            raise InvalidInput(f"{where} is not an object. Fix it first; nothing was changed.")
        inner = node.member(key)
        if inner is None:
            return node, depth
        node = inner
    return node, len(path)


def _replaced(text: str, node: Node, value: Any) -> str:
    return (
        text[: node.start]
        + _written(value, _indent_at(text, node.start), _unit(text))
        + text[node.stop :]
    )


def _inserted(text: str, node: Node, key: str, value: Any) -> str:
    # {"a": 1} becomes {"a": 1, "b": 2}; an object or list on several rows gets another row.
    if node.start == node.stop:  # an empty file
        return (
            text + "{\n" + _unit(text) + key + _written(value, _unit(text), _unit(text)) + "\n}\n"
        )
    inside = text[node.start + 1 : node.stop - 1]
    outer, unit = _indent_at(text, node.start), _unit(text)
    if "\n" not in inside and node.items and "\n" not in text.strip():
        last = node.items[-1][2].stop
        return f"{text[:last]}, {key}{json.dumps(value, ensure_ascii=False)}{text[last:]}"
    indent = _indent_at(text, node.items[0][1]) if node.items and "\n" in inside else outer + unit
    entry = f"\n{indent}{key}{_written(value, indent, unit)}"
    end = node.stop - 1
    while text[end - 1] in " \t\r\n":
        end -= 1
    if not node.items:
        return f"{text[:end]}{entry}\n{outer}{text[node.stop - 1 :]}"
    last = node.items[-1][2].stop
    comma = _skip(text, last)
    trailing = text[comma] == ","
    head = text[:last] if trailing else f"{text[:last]},"
    return f"{head}{text[last:end]}{entry}{',' if trailing else ''}\n{outer}{text[node.stop - 1 :]}"


def _without(text: str, node: Node, number: int) -> str:
    # Without "a", {"a": 1, "b": 2} becomes {"b": 2}.
    items = node.items
    if len(items) == 1:
        after = _skip(text, items[0][2].stop)
        stop = after + 1 if text[after] == "," else items[0][2].stop
        rest = text[node.start + 1 : items[0][1]] + text[stop : node.stop - 1]
        return (
            text[: node.start + 1]
            + (rest.rstrip() + "\n" if rest.strip() else "")
            + text[node.stop - 1 :]
        )
    comma = _skip(text, items[number][2].stop)
    if number == len(items) - 1:
        return _without_last(text, items[number - 1][2].stop, items[number], comma)
    rest = text[comma + 1 :]
    same_row = rest.lstrip(" \t")
    return text[: items[number][1]] + (
        same_row.lstrip() if same_row.startswith(("\n", "\r")) else same_row
    )


def _without_last(text: str, before: int, item: tuple[str, int, Node], after: int) -> str:
    # Without "b", {"a": 1, "b": 2} becomes {"a": 1}, and {"a": 1, "b": 2,} becomes {"a": 1,}.
    trailing = text[after] == ","
    comma = _skip(text, before)
    kept = text[comma + 1 : item[1]].rstrip()
    rest = text[after + 1 :] if trailing else text[item[2].stop :]
    ends_row = "//" in kept.rpartition("\n")[2] and not rest.lstrip(" \t").startswith(("\n", "\r"))
    head = text[: comma + 1] if trailing else text[:before] + text[before:comma]
    return head + kept + ("\n" if ends_row else "") + rest


def _written(value: Any, indent: str, unit: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", f"\n{indent}")


def _indent_at(text: str, position: int) -> str:
    row = text[text.rfind("\n", 0, position) + 1 : position]
    return row[: len(row) - len(row.lstrip(" \t"))]


def _unit(text: str) -> str:
    found = _INDENT.search(text)
    return (
        ("\t" if found[1].startswith("\t") else found[1]) if found and len(found[1]) <= 8 else "  "
    )


def _value(text: str, start: int, depth: int) -> Node:
    if depth > DEEPEST:
        raise _wrong(text, start, "it is nested too deeply")
    if text.startswith(("{", "["), start):
        return _collection(text, start, depth)
    if found := _STRING.match(text, start):
        try:
            return Node(json.loads(found[0]), start, found.end())
        except ValueError:
            raise _wrong(text, start, "expected a string, but it has a bad escape") from None
    if found := _PLAIN.match(text, start):
        return Node(json.loads(found[0]), start, found.end())
    raise _wrong(text, start, "expected a value")


def _collection(text: str, start: int, depth: int) -> Node:
    is_object = text[start] == "{"
    close = "}" if is_object else "]"
    items: list[tuple[str, int, Node]] = []
    position = _skip(text, start + 1)
    while not text.startswith(close, position):
        begin, key = position, ""
        if is_object:
            key, position = _key(text, position)
        node = _value(text, position, depth + 1)
        items.append((key, begin, node))
        position = _skip(text, node.stop)
        if text.startswith(",", position):  # also a trailing comma, which readers allow
            position = _skip(text, position + 1)
        elif not text.startswith(close, position):
            raise _wrong(text, position, f"expected a comma or {close}")
    value: Any = (
        {key: node.value for key, _, node in items}
        if is_object
        else [node.value for _, _, node in items]
    )
    return Node(value, start, position + 1, tuple(items))


def _key(text: str, position: int) -> tuple[str, int]:
    found = _STRING.match(text, position)
    if found is None:
        raise _wrong(text, position, "expected a key in double quotes")
    colon = _skip(text, found.end())
    if not text.startswith(":", colon):
        raise _wrong(text, colon, "expected a colon")
    return str(json.loads(found[0])), _skip(text, colon + 1)


def _skip(text: str, position: int) -> int:
    found = _BLANK.match(text, position)
    return found.end() if found else position


def _wrong(text: str, position: int, expected: str) -> InvalidInput:
    row, column = text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
    return InvalidInput(f"line {row}, column {column}: {expected}")
