"""Texts that provoke catastrophic backtracking, derived from the pattern itself.

A backtracking engine is slow where a repeat can match a run in many ways, or where every position
of a run is a start that fails only at its end. So each text is a beginning that the pattern
accepts, a repeated unit, and an end that it rejects.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator
from itertools import product
from re import _constants as codes  # type: ignore[attr-defined]  # not in typeshed
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import msgspec

# One of these is taken for each set of characters that the pattern distinguishes.
_ALPHABET = (
    "aA0 -_.\n\t/:'\"@#=+&$<>()[]{}|,;*!?`~%^\\éß三١\u00a0–’“”"
    + string.ascii_letters
    + string.digits
)
# Two different digits test a run of digits as well as ten; more characters would only cost time.
_MOST_CHARACTERS = 10
_REFUSED = "\x01–1\n"
_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    codes.CATEGORY_DIGIT: str.isdecimal,
    codes.CATEGORY_NOT_DIGIT: lambda one: not one.isdecimal(),
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_NOT_SPACE: lambda one: not one.isspace(),
    codes.CATEGORY_WORD: lambda one: one.isalnum() or one == "_",
    codes.CATEGORY_NOT_WORD: lambda one: not (one.isalnum() or one == "_"),
}


class Text(msgspec.Struct, frozen=True):
    """A hostile text of any length: beginning, unit, unit, unit, ..., end."""

    beginning: str
    unit: str
    end: str

    def of_length(self, length: int) -> str:
        return f"{self.beginning}{self.unit * (length // len(self.unit))}{self.end}"


def hostile_texts(pattern: re.Pattern[str]) -> Iterator[Text]:
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    samples = _Samples(tree)
    seen = {""}
    for beginning, unit in samples.pairs():
        if unit and (key := f"{beginning}\x00{unit}") not in seen:
            seen.add(key)
            yield Text(beginning, unit, _REFUSED)
            if beginning or len(unit) != 2:  # use the many pairs only once
                yield Text(beginning, unit, "")


class _Samples:
    """Short strings that match the parts of a pattern."""

    def __init__(self, tree: Any) -> None:
        self._tree = tree
        self._groups: dict[int, str] = {}
        nodes = {
            repr(node): node for node in _sets(tree)
        }  # unique, because long word lists repeat letters
        # `\b` distinguishes word characters, also where a set holds both kinds.
        tests = [_CATEGORIES[codes.CATEGORY_WORD], *(_test(node) for node in nodes.values())]
        kinds: dict[tuple[bool, ...], str] = {}
        for one in _ALPHABET:
            kinds.setdefault(tuple(test(one) for test in tests), one)
        self.characters = list(kinds.values())[:_MOST_CHARACTERS]

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield beginnings with units: the text before each repeat, and the text it repeats."""
        for before, body in self._repeats(self._tree, ""):
            yield before, body
            yield "", before + body
            yield from ((before, one) for one in self.characters[:6])
        whole = self.sample(self._tree)
        yield "", whole
        yield from (("", whole[:stop]) for stop in range(1, min(len(whole), 24)))
        yield from (
            ("", one + other) for one, other in product(self.characters, repeat=2) if one != other
        )
        yield from (("", one) for one in self.characters)

    def sample(self, nodes: Any) -> str:
        return "".join(self._one(code, value) for code, value in nodes)

    def _one(self, code: Any, value: Any) -> str:
        if code in (codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY):
            return _character(code, value, self.characters)
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            least, most, body = value
            return self.sample(body) * (least or (1 if most else 0))
        if code is codes.SUBPATTERN:
            self._groups[value[0]] = self.sample(value[-1])
            return self._groups[value[0]]
        if code is codes.ATOMIC_GROUP:
            return self.sample(value)
        if code is codes.BRANCH:
            return self.sample(value[1][0])
        if code is codes.GROUPREF:
            return self._groups.get(value, "")
        return ""  # assertions and positions match no characters

    def _repeats(self, nodes: Any, before: str) -> Iterator[tuple[str, str]]:
        for code, value in nodes:
            if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
                if value[1] > 8:
                    yield before, self.sample(value[2])
                yield from self._repeats(value[2], before)
            elif code is codes.SUBPATTERN:
                yield from self._repeats(value[-1], before)
            elif code is codes.ATOMIC_GROUP:
                yield from self._repeats(value, before)
            elif code in (codes.ASSERT, codes.ASSERT_NOT):
                yield from self._repeats(value[1], before)
            elif code is codes.BRANCH:
                for way in value[1]:
                    yield from self._repeats(way, before)
            before += self._one(code, value)


def _sets(nodes: Any) -> Iterator[tuple[Any, Any]]:
    for code, value in nodes:
        if code in (codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY):
            yield code, value
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield from _sets(value[2])
        elif code is codes.SUBPATTERN:
            yield from _sets(value[-1])
        elif code is codes.ATOMIC_GROUP:
            yield from _sets(value)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from _sets(value[1])
        elif code is codes.BRANCH:
            for way in value[1]:
                yield from _sets(way)


def _test(node: tuple[Any, Any]) -> Callable[[str], bool]:
    code, value = node
    if code is codes.ANY:
        return lambda one: one != "\n"
    if code is codes.LITERAL:
        return lambda one: one == chr(value)
    if code is codes.NOT_LITERAL:
        return lambda one: one != chr(value)
    negated = bool(value) and value[0][0] is codes.NEGATE
    members = value[1:] if negated else value
    return lambda one: any(_holds(item, one) for item in members) != negated


def _holds(item: tuple[Any, Any], one: str) -> bool:
    code, value = item
    if code is codes.LITERAL:
        return one == chr(value)
    if code is codes.RANGE:
        return chr(value[0]) <= one <= chr(value[1])
    return _CATEGORIES[value](one)


def _character(code: Any, value: Any, preferred: list[str]) -> str:
    if code is codes.LITERAL:
        return chr(value)
    test = _test((code, value))
    return next((one for one in (*preferred, *_ALPHABET) if test(one)), "")
