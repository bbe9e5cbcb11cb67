"""Run the command line in this process, or as a real process where that matters."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from support.warm_python import warm
from trivet.cli import main


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str

    def json(self) -> Any:
        return msgspec.json.decode(self.out)

    def error(self) -> Any:
        return msgspec.json.decode(self.err)["error"]


class CommandLine:
    """Caller of `main` with its own standard streams."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Result:
        out, err = (
            io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)
        )
        with self._monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            status = main(arguments)
        return Result(status, _text(out), _text(err))

    def json(self, *arguments: str, stdin: bytes = b"") -> Any:
        result = self(*arguments, "--json", stdin=stdin)
        assert result.status == 0, result.err
        return result.json()


def _text(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


def process(*arguments: str, stdin: bytes = b"", **environment: str) -> Result:
    """Run the real command with the model's default threads, as a user would."""
    return _ended(warm("-m", "trivet.cli", *arguments), stdin, environment)


def new_process(*arguments: str, stdin: bytes = b"", **environment: str) -> Result:
    """Run the real command in a Python that has loaded nothing yet."""
    return _ended([sys.executable, "-m", "trivet.cli", *arguments], stdin, environment)


def _ended(command: list[str], stdin: bytes, environment: Mapping[str, str]) -> Result:
    ended = subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        env={**os.environ, **environment},
        check=False,
    )
    return Result(ended.returncode, ended.stdout.decode(), ended.stderr.decode())
