"""`trivet serve` run as a real process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.http_server import Client
from support.waiting import LIMIT_SECONDS
from trivet import Trivet
from trivet.memory.admin.accounts import RIGHTS, make_key

ADDRESS = re.compile(r"http://[^ ;]+")


COMMAND = ("-m", "trivet.cli")


class Process:
    def __init__(
        self,
        *arguments: str,
        program: Sequence[str] = COMMAND,
        log: str = "",
        **environment: str,
    ) -> None:
        own = {"TRIVET_EMBEDDER": "none", **environment}
        errors = Path(log).open("a") if log else None  # noqa: SIM115
        self.running = subprocess.Popen(
            [sys.executable, *program, "serve", "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=errors or subprocess.PIPE,
            text=True,
            env={**os.environ, **own},
        )
        if errors is not None:
            errors.close()
        assert self.running.stdout is not None
        self.first_line = self.running.stdout.readline()
        found = ADDRESS.search(self.first_line)
        assert found is not None, self.first_line + self.end()[1]
        self.address = found[0].rstrip(".")
        self._clients: list[Client] = []

    def client(self, key: str | None = None) -> Client:
        self._clients.append(Client(self.address, key))
        return self._clients[-1]

    def close(self) -> None:
        for client in self._clients:
            client.http.close()
        if self.running.poll() is None:
            self.running.kill()
            self.running.communicate(timeout=LIMIT_SECONDS)

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.running.send_signal(number)

    def end(self) -> tuple[int, str]:
        """Return the exit status and the text on standard error."""
        _, errors = self.running.communicate(timeout=60)
        return self.running.returncode, errors


@contextmanager
def process(
    *arguments: str, program: Sequence[str] = COMMAND, log: str = "", **environment: str
) -> Iterator[Process]:
    """Run `trivet serve`, with `program` as the arguments of Python.

    `log` is a file for standard error. Without it, standard error goes to a pipe that holds a few
    hundred lines and is read at the end.
    """
    started = Process(*arguments, program=program, log=log, **environment)
    try:
        yield started
    finally:
        started.close()


def key_for(path: Path, user: str = "ana") -> str:
    """Create a key before the server starts, as `trivet key add` does."""
    with Trivet.open(path, embedder="none", background=False) as memory:
        store = memory.engine.store
        store.accounts.add_user(user, "admin")
        return make_key(store, "default", user, RIGHTS["admin"]).text
