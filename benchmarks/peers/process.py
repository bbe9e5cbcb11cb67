"""A driver process: requests go to stdin, answers come from stdout. See drivers/driver.py."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

BENCHMARKS = Path(__file__).parents[1]
# Disable downloads and telemetry, which would fail after minutes of waiting.
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "MEM0_TELEMETRY": "False",
    "BASIC_MEMORY_NO_PROMOS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "RUST_LOG": "error",
}
# All other environment variables could change what a product does.
KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")
LAST_LINES = 5

Embed = Callable[[Sequence[str]], Sequence[str]]
Answer = dict[str, Any]


class DriverFailed(Exception):
    """A product failed to do what it was asked."""


class Driver:
    """A running driver. Its home is in the work folder, so the user's stays untouched."""

    def __init__(self, python: Path, name: str, work: Path, embed: Embed) -> None:
        (work / "home").mkdir(parents=True, exist_ok=True)
        self.log = work / f"{name}.log"
        self._embed = embed
        with self.log.open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [str(python), "-P", "-m", f"peers.drivers.{name}_driver"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(work / "home", os.environ),
                text=True,
                encoding="utf-8",
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout

    def ask(self, do: str, **arguments: Any) -> Answer:
        self.send(do, **arguments)
        return self.answer()

    def send(self, do: str, **arguments: Any) -> None:
        self._write({"do": do, **arguments})

    def answer(self) -> Answer:
        """Return the answer, serving vectors the driver asks for."""
        while True:
            message = parsed(self._stdout.readline())
            if message is None:
                raise DriverFailed(f"the driver ended. {self._last_words()}")
            if "embed" in message:
                self._write({"vectors": list(self._embed(message["embed"]))})
            elif "error" in message:
                raise DriverFailed(message["error"])
            else:
                return message

    def resident_bytes(self) -> int:
        process = psutil.Process(self._process.pid)
        return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))

    def kill(self) -> list[Answer]:
        """Kill the process and return its unread answers."""
        self._process.kill()
        unread = [message for line in self._stdout if (message := parsed(line)) is not None]
        self._process.wait()
        return unread

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._stdout.close()

    def _write(self, message: Mapping[str, Any]) -> None:
        try:
            self._stdin.write(json.dumps(message) + "\n")
            self._stdin.flush()
        except BrokenPipeError:
            raise DriverFailed(f"the driver ended. {self._last_words()}") from None

    def _last_words(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return " / ".join(lines[-LAST_LINES:])


def parsed(line: str) -> Answer | None:
    """Return the message in a line, or None if there is none or it is cut."""
    if not line.endswith("\n"):
        return None
    message: Answer = json.loads(line)
    return message


def environment(home: Path, given: Mapping[str, str]) -> dict[str, str]:
    kept = {name: given[name] for name in KEPT if name in given}
    return {**kept, **OFFLINE, "HOME": str(home), "PYTHONPATH": str(BENCHMARKS)}
