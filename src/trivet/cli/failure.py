"""Errors as a user or a script sees them: one line on standard error and an exit status with a meaning."""

from __future__ import annotations

import sys
from typing import Any

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

STOPPED = 1
INVALID = 2
TROUBLED_STORE = 5
TROUBLED_EMBEDDER = 6
TROUBLED_KEYS = 7
INTERRUPTED = 130

STATUSES: dict[type[TrivetError], int] = {
    InvalidInput: INVALID,
    NotFound: 3,
    Conflict: 4,
    StoreError: TROUBLED_STORE,
    EmbedderError: TROUBLED_EMBEDDER,
    RerankerError: TROUBLED_EMBEDDER,
    SecretError: TROUBLED_KEYS,
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
