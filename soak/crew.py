"""Writers in separate processes, each with a thread that listens to it."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from random import Random

from soak.ledger import Ledger
from soak.writing import Opening, work
from support.waiting import ended

# Far more than a busy machine needs for a few dozen writes.
PATIENCE_SECONDS = 120.0
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["soak.writing", "trivet.memory.recall", "trivet.client.connection"])
_SPAWNS = multiprocessing.get_context("spawn")


class Crew:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._writers: list[tuple[BaseProcess, Connection, threading.Thread]] = []

    @property
    def pids(self) -> list[int]:
        return [
            process.pid
            for process, _, _ in self._writers
            if process.pid is not None and process.is_alive()
        ]

    def start(
        self, opening: Opening, count: int, random: Random, loaded: Mapping[str, str] | None = None
    ) -> None:
        """Start writers; `loaded` are variables needed at process start, such as LD_PRELOAD."""
        for _ in range(count):
            ours, theirs = multiprocessing.Pipe()
            arguments = (opening, random.randrange(2**32), theirs)
            process = (_SPAWNS if loaded else _FORKS).Process(
                target=work, args=arguments, daemon=True
            )
            with _variables(loaded or {}):
                process.start()
            theirs.close()
            thread = threading.Thread(target=self._listen, args=(ours,))
            thread.start()
            self._writers.append((process, ours, thread))

    def wait(self, acknowledged: int) -> None:
        """Wait for this many more acts.

        If they are slow, the fault comes earlier, which is fine.
        """
        self._ledger.wait(acknowledged, PATIENCE_SECONDS)

    def kill(self, pids: list[int]) -> None:
        for process, _, _ in self._writers:
            if process.pid in pids:
                assert process.is_alive(), (
                    f"a writer ended by itself, with exit status {process.exitcode}"
                )
                process.kill()

    def end(self) -> None:
        for _, pipe, _ in self._writers:
            try:
                pipe.send("over")
            except OSError:
                continue  # It was killed.
        for process, pipe, thread in self._writers:
            ended(process)
            ended(thread)
            pipe.close()
        self._writers = []

    def _listen(self, pipe: Connection) -> None:
        try:
            while True:
                self._ledger.note(pipe.recv())
        except (EOFError, ConnectionError):
            return


@contextmanager
def crew(ledger: Ledger) -> Iterator[Crew]:
    """Ask the remaining writers to end after the block; kill them if it raised."""
    hired = Crew(ledger)
    try:
        yield hired
    except BaseException:
        hired.kill(hired.pids)
        raise
    finally:
        hired.end()


@contextmanager
def _variables(more: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(more)
    try:
        yield
    finally:
        for name in more:
            os.environ.pop(name)
            if name in before:
                os.environ[name] = before[name]
