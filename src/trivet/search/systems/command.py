"""External systems that are programs: run per query, they print JSON or lines of `rg` or `grep`."""

from __future__ import annotations

import math
import os
import re
import selectors
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import IO, Any, Self

import msgspec

from trivet.search.systems.messages import (
    RawHit,
    SystemFailed,
    SystemQuery,
    at,
    decoded,
    filled_arguments,
    has_placeholders,
    raw_hits,
)
from trivet.settings.systems import WORDS, ExternalSystem

CHUNK_BYTES = 64 * 1024
# Bytes of stderr to keep: its end shows what failed.
COMPLAINT_BYTES = 4_096
# Variables that a program inherits: no keys or passwords. A system's `environment` names others it
# needs.
ENVIRONMENT = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "TZ",
    "SYSTEMROOT",
)


class Program:
    """A running program; leaving the context kills its process group."""

    def __init__(
        self, command: Sequence[str], names: Sequence[str], end: float, most_bytes: int
    ) -> None:
        self._end = end
        self._most = most_bytes
        self._read = 0
        self._output = bytearray()
        self._unsent = b""
        self._closing = False
        self._stderr_tail = b""
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment(names),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise SystemFailed("its program cannot be started", str(error)) from None
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        self._stdin = stdin
        self._pipes = (stdin, stdout, stderr)
        self._selector = selectors.DefaultSelector()
        for pipe in self._pipes:
            os.set_blocking(pipe.fileno(), False)
        for pipe in (stdout, stderr):
            self._selector.register(pipe, selectors.EVENT_READ)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            self._process.kill()  # the group has ended, or its id now belongs to another one
        self._process.wait()
        self._selector.close()
        for pipe in self._pipes:
            try:
                pipe.close()
            except BrokenPipeError:
                continue  # the program no longer reads its input

    def send(self, data: bytes) -> None:
        """Queue bytes for stdin, written while output is read."""
        if data and not self._unsent:
            self._selector.register(self._stdin, selectors.EVENT_WRITE)
        self._unsent += data

    def rest(self) -> bytes:
        self._closing = True
        if not self._unsent:
            self._stdin.close()
        while self._open:
            self._exchange()
        return bytes(self._output)

    def line(self) -> bytes | None:
        while b"\n" not in self._output:
            if not self._open:
                return None
            self._exchange()
        line, _, self._output = self._output.partition(b"\n")
        return bytes(line)

    def complaint(self) -> SystemFailed | None:
        """Wait for the end; return an error unless the exit status is 0."""
        try:
            code = self._process.wait(self._seconds_left())
        except subprocess.TimeoutExpired:
            raise SystemFailed("it did not end in time") from None
        data = self._stderr_tail.decode("utf-8", "replace")
        return SystemFailed(f"it ended with status {code}", data) if code else None

    @property
    def status(self) -> int | None:
        return self._process.poll()

    @property
    def _open(self) -> bool:
        return any(key.fileobj is self._process.stdout for key in self._selector.get_map().values())

    def _seconds_left(self) -> float:
        left = self._end - time.monotonic()
        if left <= 0:
            raise SystemFailed("it did not end in time")
        return left

    def _exchange(self) -> None:
        for key, _ in self._selector.select(self._seconds_left()):
            if key.fileobj is self._stdin:
                self._write()
            else:
                self._receive(key.fileobj)  # type: ignore[arg-type]

    def _write(self) -> None:
        try:
            self._unsent = self._unsent[
                os.write(self._stdin.fileno(), self._unsent[:CHUNK_BYTES]) :
            ]
        except BrokenPipeError:
            self._unsent = b""  # the program may ignore the rest of its input
        if not self._unsent:
            self._selector.unregister(self._stdin)
            if self._closing:
                self._stdin.close()

    def _receive(self, pipe: IO[bytes]) -> None:
        chunk = os.read(pipe.fileno(), CHUNK_BYTES)
        if not chunk:
            self._selector.unregister(pipe)
        if pipe is self._process.stderr:
            self._stderr_tail = (self._stderr_tail + chunk)[-COMPLAINT_BYTES:]
            return
        self._read += len(chunk)
        if self._read > self._most:
            raise SystemFailed(f"it printed more than {self._most} bytes")
        self._output += chunk


def _environment(names: Sequence[str]) -> Mapping[str, str]:
    return {name: os.environ[name] for name in (*ENVIRONMENT, *names) if name in os.environ}


# Exit status of `grep` and `rg` when nothing matched.
NOTHING_MATCHED = 1
# As `grep -n` and `rg -n` print. A path may contain a colon, a number cannot.
_matching_line = re.compile(r"(?P<path>.+?):(?P<line>[0-9]{1,9}):(?P<text>.*)", re.DOTALL)


def ask_command(system: ExternalSystem, asked: SystemQuery, end: float) -> Iterable[RawHit]:
    """Run the program and yield its hits; without a placeholder, stdin gets the query."""
    if not asked.words and any(WORDS in part for part in system.command):
        return ()  # an empty regular expression would match everything
    command = filled_arguments(system.command, system, asked)
    data = b"" if has_placeholders(system.command) else asked.query.encode() + b"\n"
    with Program(command, system.environment, end, system.most_bytes) as child:
        child.send(data)
        output = child.rest()
        complaint = child.complaint()
        searches_lines = system.format in ("rg", "lines")
        if complaint and not (searches_lines and (output or child.status == NOTHING_MATCHED)):
            raise complaint
    return hits_in(output, system, asked.words)


class Matched(msgspec.Struct, frozen=True):
    path: str
    line: int
    text: str


def hits_in(output: bytes, system: ExternalSystem, words: Sequence[str]) -> Iterable[RawHit]:
    text = output.decode("utf-8", "replace")
    if system.format == "json":
        return raw_hits(decoded(text), system)
    if system.format == "jsonl":
        return raw_hits(
            [_decoded_alone(line) for line in text.splitlines() if line.strip()], _listed(system)
        )
    matches = _rg(text) if system.format == "rg" else _lines(text)
    return by_file(matches, words)


def _decoded_alone(line: str) -> Any:
    """Return None for a line that is not JSON, which counts as a hit without an id."""
    try:
        return decoded(line)
    except SystemFailed:
        return None


def by_file(matches: Iterable[Matched], words: Sequence[str]) -> Iterator[RawHit]:
    """Yield one hit per file, scored by its query words and their rarity."""
    files: dict[str, dict[int, tuple[str, frozenset[str]]]] = {}
    for match in matches:
        folded = match.text.casefold()
        held = frozenset(word for word in words if word in folded)
        files.setdefault(match.path, {})[match.line] = (match.text, held)
    words_of = {
        path: frozenset().union(*(held for _, held in lines.values()))
        for path, lines in files.items()
    }
    found_in = Counter(word for held in words_of.values() for word in held)
    worth = {word: math.log1p(len(files) / count) for word, count in found_in.items()}
    for path, lines in files.items():
        best = min(lines, key=lambda line: (-sum(worth[word] for word in lines[line][1]), line))
        score = math.fsum(sorted(worth[word] for word in words_of[path]))
        yield {"id": path, "score": score, "text": lines[best][0].strip(), "line": best}


def _rg(text: str) -> Iterator[Matched]:
    for line in text.splitlines():
        message = decoded(line) if line.strip() else None
        if at(message, "type") != "match":
            continue
        path, number, held = (
            at(message, f"data.{name}") for name in ("path.text", "line_number", "lines.text")
        )
        if isinstance(path, str) and isinstance(number, int) and isinstance(held, str):
            yield Matched(path, number, held)


def _lines(text: str) -> Iterator[Matched]:
    for line in text.splitlines():
        if found := _matching_line.fullmatch(line):
            yield Matched(found["path"], int(found["line"]), found["text"])


def _listed(system: ExternalSystem) -> ExternalSystem:
    return msgspec.structs.replace(system, hits="hits")
