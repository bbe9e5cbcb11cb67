"""Every regular expression of the package runs in time linear in the text."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import trivet
from support.growth import NeverEnds, ended, grows_too_fast
from support.hostile_texts import Text, hostile_texts
from trivet.agents.capture import transcript as user_words
from trivet.dates import forms
from trivet.graph import extract as code
from trivet.secrets.value_shape import LazyPattern

PACKAGE = Path(trivet.__file__).parent
# The lab reads its own user's files: published datasets and reports.
LAB_MODULES = "trivet.lab."
# Patterns in these modules see at most this many characters, which bounds quadratic work too.
BOUNDED = {
    "trivet.agents.capture.rules": user_words.LONGEST,
    "trivet.graph.extract": code.LONGEST_LINE,
}
# Built by functions because their names come from data; scanning modules does not find them.
BUILT_BY_FUNCTIONS = {"trivet.dates.forms": (forms.any_form(), *map(forms.form, forms._FORMS))}
AT_ONE_PLACE = ("match", "fullmatch")
# Processor time; only a pattern that never finishes reaches it.
SECONDS = 5.0


class Found(msgspec.Struct, frozen=True):
    name: str
    pattern: re.Pattern[str]
    ways: tuple[
        str, ...
    ]  # how it is used: at one place of a text by `match` or `fullmatch`, or at each by `sub`


def patterns() -> list[Found]:
    found: dict[tuple[str, int, tuple[str, ...]], Found] = {}
    for module, tree in modules():
        ways = _uses(tree)
        held = {
            name: value
            for name, value in vars(importlib.import_module(module)).items()
            if name[:2] != "__"
        }
        for name, value in (held | {"made": BUILT_BY_FUNCTIONS.get(module, ())}).items():
            for pattern in _held(value):
                one = Found(f"{module}.{name}", pattern, ways.get(name, ("sub",)))
                found.setdefault((pattern.pattern, pattern.flags, one.ways), one)
    return list(found.values())


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    """Return the modules that build patterns; importing all others would take seconds."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(("trivet", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
            ".__init__"
        )
        text = path.read_text(encoding="utf-8")
        if not name.startswith(LAB_MODULES) and ("import re\n" in text or "LazyPattern" in text):
            found.append((name, ast.parse(text)))
    return tuple(found)


def _held(value: Any, depth: int = 4) -> Iterator[re.Pattern[str]]:
    """Yield the patterns in a value: itself, in containers, in structs and in classes."""
    if isinstance(value, LazyPattern):
        value = value()
    if isinstance(value, re.Pattern):
        yield from (value,) if isinstance(value.pattern, str) else ()
    elif depth and isinstance(value, (tuple, list, set, frozenset)):
        yield from (pattern for one in value for pattern in _held(one, depth - 1))
    elif depth and isinstance(value, dict):
        yield from _held(list(value.values()), depth - 1)
    elif depth and isinstance(value, msgspec.Struct):
        yield from _held([getattr(value, name) for name in value.__struct_fields__], depth - 1)
    elif depth and isinstance(value, type) and value.__module__.startswith("trivet"):
        yield from _held(
            [one for one in vars(value).values() if not isinstance(one, type)], depth - 1
        )


def _uses(tree: ast.Module) -> dict[str, tuple[str, ...]]:
    """Return how a module uses its patterns, by name, if all uses are in the module."""
    uses: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = node.value.func if isinstance(node.value, ast.Call) else node.value
            if isinstance(owner, ast.Name) and owner.id.startswith("_"):
                uses.setdefault(owner.id, set()).add(
                    node.attr if node.attr in AT_ONE_PLACE else "sub"
                )
    return {name: tuple(sorted(ways)) for name, ways in uses.items()}


def test_patterns_are_at_module_level() -> None:
    """The other test would miss a pattern built inside a function."""
    inside = {
        name
        for name, tree in modules()
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        and any(map(_builds_pattern, ast.walk(function)))
    }
    kept_in_tables = {"trivet.agents.capture.rules", "trivet.secrets.value_shape"}
    assert inside - kept_in_tables - set(BUILT_BY_FUNCTIONS) == set()


def _builds_pattern(node: ast.AST) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr != "escape"
    )


def _read(found: Found, text: str) -> None:
    for way in found.ways:
        found.pattern.sub("", text) if way == "sub" else getattr(found.pattern, way)(text)


def _slow(found: Found, seconds: float) -> Text | None:
    text = None
    try:
        with ended(seconds):
            for text in hostile_texts(found.pattern):
                if grows_too_fast(partial(_read, found), text.of_length):
                    return text
    except NeverEnds:
        return text
    return None


def test_every_pattern_is_linear() -> None:
    assert max(BOUNDED.values()) <= 400, "short enough that quadratic work takes milliseconds"
    found = [one for one in patterns() if one.name.rpartition(".")[0] not in BOUNDED]
    assert len(found) > 250, "the module scan finds the patterns"
    slow = {one.name: text for one in found if (text := _slow(one, SECONDS)) is not None}
    assert slow == {}


@pytest.mark.parametrize(
    "pattern",
    [r"[^\W\d_]+$", r"<(?=\s*/?\s*x)", r"(\w+)://", r"(?:a+)+$", r"\[.*?\]\]", r"\b[\w-]+\.com"],
)
def test_slow_pattern_is_detected(pattern: str) -> None:
    assert _slow(Found("", re.compile(pattern), ("sub",)), seconds=0.2) is not None
