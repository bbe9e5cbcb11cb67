"""Parser and printer of the recipe syntax `name(word, 0.5, key=value) | name`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from trivet.errors import InvalidInput

Scalar = str | float

NAME = re.compile(r"[a-z][a-z0-9_-]*")
KEY = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)?")
WORD = re.compile(r"[a-z0-9_-]+")
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?")
NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
TOKEN = re.compile(r"[(),|=]|[^\s(),|=]+")

# Integers up to here are exact as floats and shorter without an exponent.
MAX_PLAIN_INTEGER = 10**15


class Options(Mapping[str, Scalar]):
    """An immutable, hashable mapping that compares equal in any order."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Scalar] | Iterable[tuple[str, Scalar]] = ()) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> Scalar:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"Options({self._items!r})"


@dataclass(frozen=True, slots=True)
class Call:
    """One step of a recipe, whose text parses back to an equal value."""

    name: str
    arguments: tuple[Scalar, ...] = ()
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        _must_match(NAME, self.name, "a name")
        for key in self.options:
            _must_match(KEY, key, "an option name")
        for value in (*self.arguments, *self.options.values()):
            _must_be_writable(value)

    def __str__(self) -> str:
        parts = [print_value(value) for value in self.arguments]
        parts += [f"{key}={print_value(value)}" for key, value in self.options.items()]
        return f"{self.name}({', '.join(parts)})" if parts else self.name


def parse_call(text: str) -> Call:
    reader = _Reader(text)
    call = reader.call()
    if reader.token is not None:
        reader.fail("the end")
    return call


def parse_pipeline(text: str) -> tuple[Call, ...]:
    reader = _Reader(text)
    calls = [reader.call()]
    while reader.take("|"):
        calls.append(reader.call())
    if reader.token is not None:
        reader.fail("'|' or the end")
    return tuple(calls)


def print_pipeline(calls: Iterable[Call]) -> str:
    return " | ".join(map(str, calls))


def print_value(value: Scalar) -> str:
    """Return the shortest text that parses back to the value."""
    if isinstance(value, str):
        return value
    if abs(value) < MAX_PLAIN_INTEGER and value == int(value):
        return str(int(value))
    return repr(float(value))


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [(match[0], match.start()) for match in TOKEN.finditer(text)]
        self._next = 0

    @property
    def token(self) -> str | None:
        return self._tokens[self._next][0] if self._next < len(self._tokens) else None

    def take(self, symbol: str) -> bool:
        if self.token != symbol:
            return False
        self._next += 1
        return True

    def fail(self, expected: str) -> NoReturn:
        found = "the end" if self.token is None else repr(self.token)
        position = len(self._text) if self.token is None else self._tokens[self._next][1]
        raise InvalidInput(
            f"cannot read {self._text!r} at character {position + 1}: "
            f"expected {expected}, found {found}"
        )

    def call(self) -> Call:
        name = self._matching(NAME, "a name")
        if not self.take("(") or self.take(")"):
            return Call(name)
        arguments: list[Scalar] = []
        options: dict[str, Scalar] = {}
        self._item(arguments, options)
        while self.take(","):
            self._item(arguments, options)
        if not self.take(")"):
            self.fail("',' or ')'")
        return Call(name, tuple(arguments), Options(options))

    def _item(self, arguments: list[Scalar], options: dict[str, Scalar]) -> None:
        if self._peek() != "=":
            if options:
                self.fail("an option (key=value), because plain arguments come before options")
            arguments.append(self._value())
            return
        if self.token in options:
            self.fail("each option once")
        key = self._matching(KEY, "an option name (a word, or two joined by a dot)")
        self.take("=")
        options[key] = self._value()

    def _peek(self) -> str | None:
        following = self._next + 1
        return self._tokens[following][0] if following < len(self._tokens) else None

    def _matching(self, pattern: re.Pattern[str], expected: str) -> str:
        token = self.token
        if token is None or not pattern.fullmatch(token):
            self.fail(expected)
        self._next += 1
        return token

    def _value(self) -> Scalar:
        token = self.token
        if token is not None and NUMBER.fullmatch(token):
            number = float(token)
            if not math.isfinite(number):
                self.fail("a finite number")
            self._next += 1
            return number
        if token is not None and NOT_FINITE.fullmatch(token):
            self.fail("a finite number or a word")
        return self._matching(WORD, "a number or a word of a-z, 0-9, '_' and '-'")


def _must_match(pattern: re.Pattern[str], text: str, what: str) -> None:
    if not pattern.fullmatch(text):
        raise InvalidInput(
            f"{text!r} cannot be {what} in a recipe: use a-z, 0-9, '_' and '-', "
            "starting with a letter"
        )


def _must_be_writable(value: Scalar) -> None:
    if isinstance(value, str):
        if not WORD.fullmatch(value) or NUMBER.fullmatch(value) or NOT_FINITE.fullmatch(value):
            raise InvalidInput(
                f"{value!r} cannot be a word in a recipe: use a-z, 0-9, '_' and '-', not a number"
            )
    elif not math.isfinite(value):
        raise InvalidInput(f"{value!r} cannot be in a recipe: numbers must be finite")
