"""How the processes of one server share who comes: the one with fewer connections is the quicker to let them in.

Left to themselves, the first process that wakes up takes all that stand at the door. Of clients that come together, as
the connections of a pool do, one process would have all for as long as they stay, and the other cores none.

Several processes behind one address, for machines of several cores: a Python process uses little more than one.
"""

from __future__ import annotations

import asyncio
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

from trivet.serve.http import preload as before_fork
from trivet.serve.http.monitoring import METRICS_FOLDER_VARIABLE
from trivet.serve.http.preload import PRELOADED_MODELS, bundled_models
from trivet.serve.http.server import EXIT_KILLED, Server, run, set_up_logs
from trivet.settings import Settings

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext


# The longest that a process leaves a newcomer to the others, and with how many connections it waits half of that.
MAX_ACCEPT_DELAY = 0.005
HALF_DELAY_CONNECTIONS = 8
# After the machine has no room for another connection. Those at the door wait.
ACCEPT_RETRY_SECONDS = 1.0
logger = logging.getLogger("trivet.serve.http")


def accept_delay(connections: int) -> float:
    """So many seconds a process waits with so many connections before it takes another."""
    return MAX_ACCEPT_DELAY * connections / (connections + HALF_DELAY_CONNECTIONS)


class SharedSocketServer(Server):
    """Lets in one at a time from a socket that other processes have too."""

    _acceptor: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        assert sockets is not None, "it is given the socket that all share"
        [listener] = sockets
        self._acceptor = asyncio.create_task(self._accept_connections(listener))
        self._acceptor.add_done_callback(self._acceptor_done)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._acceptor is not None:
            self._acceptor.cancel()
            await asyncio.wait({self._acceptor})
        await super().shutdown(sockets)

    async def _accept_connections(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        listener.setblocking(False)
        while True:
            await _readable(listener)
            await asyncio.sleep(accept_delay(len(self.server_state.connections)))
            try:
                client, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                continue  # another process was quicker, or they left
            except OSError as error:
                logger.error("No connection can be accepted for now: %s", error)
                await asyncio.sleep(ACCEPT_RETRY_SECONDS)
                continue
            await loop.connect_accepted_socket(self._connection, client)

    def _connection(self) -> asyncio.Protocol:
        protocol: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol

    def _acceptor_done(self, door: asyncio.Task[None]) -> None:
        """Where it closed by an error this process would serve nobody: it ends, and another takes its place."""
        if not door.cancelled() and door.exception() is not None:
            logger.error(
                "The process lets nobody in any more, and ends.", exc_info=door.exception()
            )
            self.should_exit = True


async def _readable(listener: socket.socket) -> None:
    """Until somebody stands at the door."""
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    loop.add_reader(listener, came.set)
    try:
        await came.wait()
    finally:
        loop.remove_reader(listener)


# One that ends sooner than this has not come up; after so many in a row the server ends, and says so.
STARTUP_SECONDS = 5.0
MAX_FAILED_STARTS = 3
# Also by the signal itself: it had not begun to serve.
CLEAN_EXIT_CODES = (0, -signal.SIGTERM)
# A process has at least so many threads for reads: some may wait for a model elsewhere while others work.
MIN_THREADS = 4
Pipe = tuple[Connection, Connection]


def run_workers(settings: Settings, listener: socket.socket, host: str, count: int) -> None:
    """Serves until a signal comes. One that dies is followed by another; where this process is killed, all end."""
    set_up_logs(log_access=True)
    with tempfile.TemporaryDirectory(prefix="trivet-counts-") as folder:
        os.environ[METRICS_FOLDER_VARIABLE] = folder
        os.environ[PRELOADED_MODELS] = " ".join(bundled_models(settings))
        status = _Supervisor(_settings_per_worker(settings, count), listener, host, count).run()
    if status:
        sys.exit(status)


def _settings_per_worker(settings: Settings, count: int) -> Settings:
    """The threads of a server are shared out to its processes: more of them take no more work, and memory each."""
    threads = max(
        min(MIN_THREADS, settings.server_threads), math.ceil(settings.server_threads / count)
    )
    return msgspec.structs.replace(settings, server_threads=threads)


class _Supervisor:
    def __init__(self, settings: Settings, listener: socket.socket, host: str, count: int) -> None:
        self._settings, self._listener, self._host = settings, listener, host
        self._context = _context()
        self._pipes: list[Pipe] = [self._context.Pipe(duplex=False) for _ in range(count)]
        self._running: dict[int, BaseProcess] = {}
        self._began: dict[int, float] = {}
        self._failed_starts = 0
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
                    status = self._on_exit(place, one) or status
        return status

    def _start(self, place: int) -> None:
        own, others = (
            self._pipes[place][0],
            [pipe[1] for at, pipe in enumerate(self._pipes) if at != place],
        )
        arguments = (self._settings, self._listener, self._host, own, others)
        process = self._context.Process(
            target=_worker_main, args=arguments, name=f"trivet-worker-{place + 1}"
        )
        process.start()
        self._running[place], self._began[place] = process, time.monotonic()
        if self._ending:  # the signal came while it was being started
            process.terminate()

    def _on_exit(self, place: int, one: BaseProcess) -> int:
        """What its end means for the server: another one follows, unless the server ends or none comes up."""
        from prometheus_client.multiprocess import mark_process_dead

        del self._running[place]
        if one.pid is not None:
            mark_process_dead(one.pid)  # type: ignore[no-untyped-call]
        if self._ending:
            return 0 if one.exitcode in CLEAN_EXIT_CODES else EXIT_KILLED
        young = time.monotonic() - self._began[place] < STARTUP_SECONDS
        self._failed_starts = self._failed_starts + 1 if young else 0
        if self._failed_starts >= MAX_FAILED_STARTS:
            logger.error(
                "%s ended with %s before it could serve, as did those before. The server ends.",
                one.name,
                one.exitcode,
            )
            self._end(signal.SIGTERM, None)
            return EXIT_KILLED
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


def _worker_main(
    settings: Settings,
    listener: socket.socket,
    host: str,
    own: Connection,
    others: Sequence[Connection],
) -> None:
    """One of the processes. A Ctrl-C is for the first alone, which passes it on."""
    from trivet.serve.http.endpoints.sync import WorkerPeers
    from trivet.serve.http.tenants import Tenants

    os.setpgrp()
    threading.Thread(target=_end_with_parent, name="trivet-parent", daemon=True).start()
    tenants = Tenants(settings, processes=len(others) + 1)
    # The event loop of Windows cannot wait at a door without taking in who comes.
    kind = SharedSocketServer if os.name == "posix" else Server
    run(tenants, settings, listener, host, neighbours=WorkerPeers(own, others), kind=kind)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
