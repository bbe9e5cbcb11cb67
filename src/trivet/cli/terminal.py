"""Standard streams of the command line; stored text never acts on the terminal."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TextIO

import msgspec
import typer

from trivet.common.files import atomic_write
from trivet.errors import (
    Conflict,
    EmbedderError,
    Forbidden,
    InvalidInput,
    NotFound,
    RerankerError,
    SecretError,
    StoreError,
    TooMany,
    TrivetError,
    Unauthorised,
)

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


# With control characters or a change of text direction, stored text could pose as other text.
UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)

Part = str | tuple[str, str]


class Line(NamedTuple):
    """Parts of text, plain or `(text, style)`; wrapped rows keep the indent."""

    parts: Sequence[Part]
    indent: int = 0


def line(*parts: Part, indent: int = 0) -> Line:
    return Line(parts, indent)


def printable(text: str) -> str:
    """Replace every character that would act on a terminal by its code."""
    return UNPRINTABLE.sub(_code, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    return " ".join(printable(text).split())


def _code(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def write_json(value: Any) -> None:
    write_text(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def plain_lines(result: Any) -> list[Line]:
    value = msgspec.to_builtins(result)
    rows = value if isinstance(value, (list, tuple)) else [value]
    if all(isinstance(row, dict) for row in rows):
        return [
            line((f"{name}: ", "bold"), one_line(str(held)))
            for row in rows
            for name, held in row.items()
        ]
    return [line(one_line(str(row))) for row in rows]


def write_lines(lines: Iterable[Line]) -> None:
    write_text(_for_terminal(lines) if sys.stdout.isatty() else _for_pipe(lines))


def write_text(text: str) -> None:
    """Write UTF-8 in any locale, and flush for the reader."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def discard_output() -> None:
    """Drop output after the reader closed the pipe (`| head`), or Python fails to flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _for_pipe(lines: Iterable[Line]) -> str:
    """Return plain rows without rich, which is half of the start-up time."""
    return "".join(_indented(_plain(entry), entry.indent) + "\n" for entry in lines)


def _plain(entry: Line) -> str:
    return "".join(printable(part if isinstance(part, str) else part[0]) for part in entry.parts)


def _indented(text: str, indent: int) -> str:
    return "\n".join((" " * indent + row).rstrip() for row in text.split("\n"))


def _for_terminal(lines: Iterable[Line]) -> str:
    from io import StringIO

    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    # Never markup: `[bold]` in stored text must print as it is.
    console = Console(
        file=StringIO(), force_terminal=True, highlight=False, markup=False, emoji=False
    )
    for entry in lines:
        text = Text()
        for part in entry.parts:
            words, style = (part, "") if isinstance(part, str) else part
            text.append(printable(words), style)
        console.print(Padding(text, (0, 0, 0, entry.indent), expand=False))
    rendered = console.file
    assert isinstance(rendered, StringIO)
    return rendered.getvalue()


STOPPED = 1
INVALID = 2
STORE_ERROR = 5
EMBEDDER_ERROR = 6
KEY_ERROR = 7
INTERRUPTED = 130

STATUSES: dict[type[TrivetError], int] = {
    InvalidInput: INVALID,
    NotFound: 3,
    Conflict: 4,
    StoreError: STORE_ERROR,
    EmbedderError: EMBEDDER_ERROR,
    RerankerError: EMBEDDER_ERROR,
    SecretError: KEY_ERROR,
    Unauthorised: 8,
    Forbidden: 9,
    TooMany: 10,
}


def status_of(error: TrivetError) -> int:
    return next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 1)


def report_error(error: TrivetError, as_json: bool) -> int:
    _report(type(error).__name__, str(error), as_json)
    return status_of(error)


def report_usage(error: typer.TyperException, as_json: bool) -> int:
    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "trivet"
    _report("InvalidInput", f"{_sentence(error.format_message())} See `{command} --help`.", as_json)
    return INVALID


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def warn(message: str) -> None:
    print(f"trivet: warning: {one_line(message)}", file=sys.stderr)


def _report(kind: str, message: str, as_json: bool) -> None:
    if as_json:
        print(
            msgspec.json.encode({"error": {"kind": kind, "message": message}}).decode(),
            file=sys.stderr,
        )
    else:
        print(f"trivet: {one_line(message)}", file=sys.stderr)


APPEAR_AFTER_SECONDS = 1.0


class DelayedProgress:
    """A progress bar on standard error, on a terminal and after a delay.

    Call it with the number of items just finished. `total` maps the number finished to the expected
    total, or None.
    """

    def __init__(
        self, label: str, total: Callable[[int], int | None], after: float = APPEAR_AFTER_SECONDS
    ) -> None:
        self._label = label
        self._total = total
        self._after = after
        self._started = time.monotonic()
        self._done = 0
        self._bar: tuple[Progress, TaskID] | None = None

    def __call__(self, count: int) -> None:
        self._done += count
        if (
            self._bar is None
            and sys.stderr.isatty()
            and time.monotonic() - self._started > self._after
        ):
            self._bar = self._appear()
        if self._bar is not None:
            bar, task = self._bar
            bar.update(task, completed=self._done)

    def _appear(self) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        bar = Progress(*columns, console=Console(stderr=True), transient=True)
        bar.start()
        return bar, bar.add_task(self._label, total=self._total(self._done))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar[0].stop()


DASH = "-"
# Characters: a memory of 32 KiB with two thousand revisions.
LONGEST_LINE = 64 * 2**20


def read_if_dash(text: str) -> str:
    """Return the text, or for `-` standard input without its final line break."""
    if text != DASH:
        return text
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"Standard input is not UTF-8 text ({error.reason}). Convert it first."
        ) from None


@contextmanager
def open_lines(name: str) -> Iterator[Iterator[str]]:
    """Yield the lines of a file, or of standard input for `-`.

    Bytes that are not UTF-8 are escaped, so that a bad line costs only itself.
    """
    if name == DASH:
        yield _lines(
            TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", errors="surrogateescape")
        )
        return
    try:
        with Path(name).open(encoding="utf-8-sig", errors="surrogateescape") as file:
            yield _lines(file)
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}.") from None


def _lines(file: TextIO) -> Iterator[str]:
    for number in count(1):
        # A file without line breaks, or a device, would fill the memory.
        line = file.readline(LONGEST_LINE + 1)
        if not line:
            return
        if len(line) > LONGEST_LINE:
            raise InvalidInput(
                f"Line {number} is longer than {LONGEST_LINE:,} characters, so this is not a file "
                "of memories."
            )
        yield line


def write_json_atomically(target: Path, value: Any) -> None:
    """Write the value as indented JSON, as `write_rows_atomically` writes rows."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=1).decode()
    write_rows_atomically(target, [text])


def write_rows_atomically(target: Path, rows: Iterable[str]) -> int:
    """Write the rows and return how many; readers see the old file until the new one is whole."""
    if target.exists() and not target.is_file():  # a pipe or a device must not be replaced
        return _write_rows(target, rows)
    count = 0
    try:
        with atomic_write(target) as file:
            for row in rows:
                file.write(f"{row}\n".encode())
                count += 1
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written: {error.strerror}. Nothing was changed; name another file."
        ) from None
    return count


def _write_rows(target: Path, rows: Iterable[str]) -> int:
    count = 0
    try:
        with target.open("w", encoding="utf-8", newline="\n") as file:
            for row in rows:
                file.write(f"{row}\n")
                count += 1
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror}.") from None
    return count
