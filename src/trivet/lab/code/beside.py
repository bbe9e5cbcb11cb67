"""semble beside us: a process of its own Python, which is asked the same questions about the same trees."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypeVar

import msgspec

from trivet.errors import InvalidInput, TrivetError
from trivet.lab.code.ask import Answers, Asked, Indexed, falling
from trivet.lab.code.sets import CodeSet, Scope

DRIVER = Path(__file__).with_name("semble_driver.py")
INSTALL = "python -m venv semble-venv && semble-venv/bin/pip install semble==0.7.0"
LAST_WORDS = 600

T = TypeVar("T", bound=msgspec.Struct)


class Version(msgspec.Struct, frozen=True):
    """Which semble it is, and whether it has its model, without which words alone decide."""

    version: str
    model: bool

    @property
    def name(self) -> str:
        return f"semble {self.version}" + ("" if self.model else " without its model")


class _Answer(msgspec.Struct, frozen=True):
    files: int
    megabytes: float
    chunks: int
    processor_s: float
    wall_s: float
    ranked: Sequence[Sequence[str]]
    wall_ms: Sequence[float]
    processor_ms: Sequence[float]


class Semble:
    """Asked set by set, in turn with us, so that a busy machine is busy for both. What fails ends the run."""

    def __init__(self, python: Path) -> None:
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed by __exit__
        try:
            self._process = subprocess.Popen(
                [str(python), str(DRIVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said
            )
        except OSError as error:
            self._said.close()
            raise InvalidInput(
                f"{python} cannot be started ({error.strerror}). Give the Python of an environment with semble, which "
                f"you make with: {INSTALL}"
            ) from None
        try:
            self.version = self._read(Version)
        except TrivetError as error:
            self._end()
            raise InvalidInput(f"{error} If semble is not installed there: {INSTALL}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def ask(self, one: CodeSet, scope: Scope) -> Answers:
        job = {"folder": str(one.folder(scope)), "texts": [query.text for query in one.queries]}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(job) + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, and reading its answer tells why
        return _answers(one, scope, self._read(_Answer))

    def _read(self, kind: type[T]) -> T:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        try:
            return msgspec.json.decode(line, type=kind)
        except (msgspec.DecodeError, msgspec.ValidationError):
            self._said.seek(0)
            words = self._said.read().decode(errors="replace").strip()[-LAST_WORDS:]
            raise TrivetError(f"semble gave no answer. The last it said: {words or 'nothing'}.") from None

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._said.close()


def _answers(one: CodeSet, scope: Scope, answer: _Answer) -> Answers:
    prefix = one.prefix(scope)
    run = {
        query.id: falling((prefix + path, 1 / rank) for rank, path in enumerate(files, 1))
        for query, files in zip(one.queries, answer.ranked, strict=True)
    }
    asked = Asked(run=run, wall_ms=answer.wall_ms, processor_ms=answer.processor_ms)
    return Answers(indexed=msgspec.convert(answer, Indexed, from_attributes=True), asked=(asked,))
