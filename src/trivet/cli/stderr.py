"""Errors as a user or a script sees them: one line on standard error and an exit status with a meaning.

A progress bar on standard error. It appears only on a terminal, and only if the work takes long.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec
import typer

from trivet.cli.output import one_line
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
    """A command line that cannot be read. The context, where there is one, knows which help to point to."""
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
        print(msgspec.json.encode({"error": {"kind": kind, "message": message}}).decode(), file=sys.stderr)
    else:
        print(f"trivet: {one_line(message)}", file=sys.stderr)


APPEAR_AFTER_SECONDS = 1.0


class DelayedProgress:
    """Call it with how many more are done. `total` gets how many that is and says how many it will be, if known."""

    def __init__(self, label: str, total: Callable[[int], int | None], after: float = APPEAR_AFTER_SECONDS) -> None:
        self._label = label
        self._total = total
        self._after = after
        self._started = time.monotonic()
        self._done = 0
        self._bar: tuple[Progress, TaskID] | None = None

    def __call__(self, count: int) -> None:
        self._done += count
        if self._bar is None and sys.stderr.isatty() and time.monotonic() - self._started > self._after:
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
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar[0].stop()
