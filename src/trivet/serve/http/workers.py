"""Several processes behind one address, for machines of several cores: a Python process uses little more than one."""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import TYPE_CHECKING

import msgspec

from trivet.serve.http import before_fork
from trivet.serve.http.before_fork import OPENED, bundled_models
from trivet.serve.http.metrics import COUNTED_IN
from trivet.serve.http.server import KILLED, Server, run, set_up_logs
from trivet.serve.http.shared_door import SharingServer
from trivet.settings import Settings

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext

# One that ends sooner than this has not come up; after so many in a row the server ends, and says so.
YOUNG_SECONDS = 5.0
TOO_MANY = 3
# Also by the signal itself: it had not begun to serve.
ENDED_WELL = (0, -signal.SIGTERM)
# A process has at least so many threads for reads: some may wait for a model elsewhere while others work.
LEAST_THREADS = 4
logger = logging.getLogger("trivet.serve.http")
Pipe = tuple[Connection, Connection]


def run_workers(settings: Settings, listener: socket.socket, host: str, count: int) -> None:
    """Serves until a signal comes. One that dies is followed by another; where this process is killed, all end."""
    set_up_logs(log_access=True)
    with tempfile.TemporaryDirectory(prefix="trivet-counts-") as folder:
        os.environ[COUNTED_IN] = folder
        os.environ[OPENED] = " ".join(bundled_models(settings))
        status = _Workers(_part_of(settings, count), listener, host, count).run()
    if status:
        sys.exit(status)


def _part_of(settings: Settings, count: int) -> Settings:
    """The threads of a server are shared out to its processes: more of them take no more work, and memory each."""
    threads = max(min(LEAST_THREADS, settings.server_threads), math.ceil(settings.server_threads / count))
    return msgspec.structs.replace(settings, server_threads=threads)


class _Workers:
    def __init__(self, settings: Settings, listener: socket.socket, host: str, count: int) -> None:
        self._settings, self._listener, self._host = settings, listener, host
        self._context = _context()
        self._pipes: list[Pipe] = [self._context.Pipe(duplex=False) for _ in range(count)]
        self._running: dict[int, BaseProcess] = {}
        self._began: dict[int, float] = {}
        self._died_young = 0
        self._ending = False

    def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        for place in range(len(self._pipes)):
            self._start(place)
        status = 0
        while self._running:
            wait([one.sentinel for one in self._running.values()])
            for place, one in list(self._running.items()):
                if one.exitcode is not None:
                    status = self._ended(place, one) or status
        return status

    def _start(self, place: int) -> None:
        own, others = self._pipes[place][0], [pipe[1] for at, pipe in enumerate(self._pipes) if at != place]
        arguments = (self._settings, self._listener, self._host, own, others)
        process = self._context.Process(target=_work, args=arguments, name=f"trivet-worker-{place + 1}")
        process.start()
        self._running[place], self._began[place] = process, time.monotonic()
        if self._ending:  # the signal came while it was being started
            process.terminate()

    def _ended(self, place: int, one: BaseProcess) -> int:
        """What its end means for the server: another one follows, unless the server ends or none comes up."""
        from prometheus_client.multiprocess import mark_process_dead

        del self._running[place]
        if one.pid is not None:
            mark_process_dead(one.pid)  # type: ignore[no-untyped-call]
        if self._ending:
            return 0 if one.exitcode in ENDED_WELL else KILLED
        young = time.monotonic() - self._began[place] < YOUNG_SECONDS
        self._died_young = self._died_young + 1 if young else 0
        if self._died_young >= TOO_MANY:
            logger.error(
                "%s ended with %s before it could serve, as did those before. The server ends.", one.name, one.exitcode
            )
            self._end(signal.SIGTERM, None)
            return KILLED
        logger.warning("%s ended with %s; another one takes its place.", one.name, one.exitcode)
        self._start(place)
        return 0

    def _end(self, number: int, frame: FrameType | None) -> None:
        """As the signal to one process: the first lets them finish, the second ends them at once."""
        self._ending = True
        for one in self._running.values():
            one.terminate()


def _context() -> SpawnContext | ForkServerContext:
    """How processes are started. Forked ones share the models that were opened before; Windows forks none."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload([before_fork.__name__])
    return context


def _work(
    settings: Settings, listener: socket.socket, host: str, own: Connection, others: Sequence[Connection]
) -> None:
    """One of the processes. A Ctrl-C is for the first alone, which passes it on."""
    from trivet.serve.http.neighbours import Neighbours
    from trivet.serve.http.tenants import Tenants

    os.setpgrp()
    threading.Thread(target=_end_with_parent, name="trivet-parent", daemon=True).start()
    tenants = Tenants(settings, processes=len(others) + 1)
    # The event loop of Windows cannot wait at a door without taking in who comes.
    kind = SharingServer if os.name == "posix" else Server
    run(tenants, settings, listener, host, neighbours=Neighbours(own, others), kind=kind)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
