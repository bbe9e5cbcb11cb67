"""Several worker processes on one listening socket, for machines with several cores."""

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


# Longest wait before a worker accepts, and the connections at which it waits half of it.
MAX_ACCEPT_DELAY = 0.005
HALF_DELAY_CONNECTIONS = 8
# Pause after the machine ran out of room for connections.
ACCEPT_RETRY_SECONDS = 1.0
logger = logging.getLogger("trivet.serve.http")


def accept_delay(connections: int) -> float:
    return MAX_ACCEPT_DELAY * connections / (connections + HALF_DELAY_CONNECTIONS)


class SharedSocketServer(Server):
    _acceptor: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        assert sockets is not None, "the shared socket is required"
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
                continue  # another worker accepted it, or the client left
            except OSError as error:
                logger.error("Cannot accept connections for now: %s", error)
                await asyncio.sleep(ACCEPT_RETRY_SECONDS)
                continue
            await loop.connect_accepted_socket(self._connection, client)

    def _connection(self) -> asyncio.Protocol:
        protocol: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol

    def _acceptor_done(self, door: asyncio.Task[None]) -> None:
        if not door.cancelled() and door.exception() is not None:
            logger.error(
                "The worker cannot accept connections any more and ends.", exc_info=door.exception()
            )
            self.should_exit = True


async def _readable(listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    loop.add_reader(listener, came.set)
    try:
        await came.wait()
    finally:
        loop.remove_reader(listener)


# A worker that ends sooner failed to start; after this many in a row the server ends.
STARTUP_SECONDS = 5.0
MAX_FAILED_STARTS = 3
# SIGTERM if the worker had not begun to serve.
CLEAN_EXIT_CODES = (0, -signal.SIGTERM)
# Minimum per worker, as some threads may wait for a remote model.
MIN_THREADS = 4
Pipe = tuple[Connection, Connection]


def run_workers(settings: Settings, listener: socket.socket, host: str, count: int) -> None:
    set_up_logs(log_access=True)
    with tempfile.TemporaryDirectory(prefix="trivet-counts-") as folder:
        os.environ[METRICS_FOLDER_VARIABLE] = folder
        os.environ[PRELOADED_MODELS] = " ".join(bundled_models(settings))
        status = _Supervisor(_settings_per_worker(settings, count), listener, host, count).run()
    if status:
        sys.exit(status)


def _settings_per_worker(settings: Settings, count: int) -> Settings:
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
        if self._ending:  # the signal came during the start
            process.terminate()

    def _on_exit(self, place: int, one: BaseProcess) -> int:
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
                "%s ended with %s during startup, like the workers before it. The server ends.",
                one.name,
                one.exitcode,
            )
            self._end(signal.SIGTERM, None)
            return EXIT_KILLED
        logger.warning("%s ended with %s; a new one replaces it.", one.name, one.exitcode)
        self._start(place)
        return 0

    def _end(self, number: int, frame: FrameType | None) -> None:
        """Pass on the signal: the first ends workers gracefully, the second at once."""
        self._ending = True
        for one in self._running.values():
            one.terminate()


def _context() -> SpawnContext | ForkServerContext:
    """Return the start method: forked workers share models, but Windows cannot fork."""
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
    """Run a worker in its own process group: Ctrl-C must reach only the supervisor."""
    from trivet.serve.http.endpoints.sync import WorkerPeers
    from trivet.serve.http.tenants import Tenants

    os.setpgrp()
    threading.Thread(target=_end_with_parent, name="trivet-parent", daemon=True).start()
    tenants = Tenants(settings, processes=len(others) + 1)
    # On Windows, the event loop cannot wait on a socket without accepting.
    kind = SharedSocketServer if os.name == "posix" else Server
    run(tenants, settings, listener, host, neighbours=WorkerPeers(own, others), kind=kind)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
