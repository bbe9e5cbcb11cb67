"""What reaches standard output: JSON for machines, lines for people. Stored text never acts on the terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

# Control characters, and those that turn the direction of text: both let stored text pose as something else.
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

Part = str | tuple[str, str]


class Line(NamedTuple):
    """Text in styled parts, `(text, style)` or plain; it may wrap or hold line ends, always behind its indent."""

    parts: Sequence[Part]
    indent: int = 0


def line(*parts: Part, indent: int = 0) -> Line:
    return Line(parts, indent)


def printable(text: str) -> str:
    """The text with every character that would act on a terminal shown as its code."""
    return UNPRINTABLE.sub(_code, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    return " ".join(printable(text).split())


def _code(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def write_json(value: Any) -> None:
    write_text(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def plain_lines(result: Any) -> list[Line]:
    """Any result as lines: a field each, a row for each item of a list."""
    value = msgspec.to_builtins(result)
    rows = value if isinstance(value, (list, tuple)) else [value]
    if all(isinstance(row, dict) for row in rows):
        return [line((f"{name}: ", "bold"), one_line(str(held))) for row in rows for name, held in row.items()]
    return [line(one_line(str(row))) for row in rows]


def write_lines(lines: Iterable[Line]) -> None:
    write_text(_for_terminal(lines) if sys.stdout.isatty() else _for_pipe(lines))


def write_text(text: str) -> None:
    """UTF-8 whatever the locale says, and at once, so that a reader need not wait for what comes after."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def discard_output() -> None:
    """Whoever read our output has had enough (`| head`). Python must not try to flush the rest at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _for_pipe(lines: Iterable[Line]) -> str:
    """Nothing is wrapped or coloured: the next program wants whole lines. Needs no rich, which is half the start-up."""
    return "".join(_indented(_plain(entry), entry.indent) + "\n" for entry in lines)


def _plain(entry: Line) -> str:
    return "".join(printable(part if isinstance(part, str) else part[0]) for part in entry.parts)


def _indented(text: str, indent: int) -> str:
    return "\n".join((" " * indent + row).rstrip() for row in text.split("\n"))


def _for_terminal(lines: Iterable[Line]) -> str:
    """Parts become rich text objects, never markup, so that `[bold]` in a memory is just that."""
    from io import StringIO

    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(file=StringIO(), force_terminal=True, highlight=False, markup=False, emoji=False)
    for entry in lines:
        text = Text()
        for part in entry.parts:
            words, style = (part, "") if isinstance(part, str) else part
            text.append(printable(words), style)
        console.print(Padding(text, (0, 0, 0, entry.indent), expand=False))
    rendered = console.file
    assert isinstance(rendered, StringIO)
    return rendered.getvalue()
