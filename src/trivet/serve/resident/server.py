"""The resident process, which serves until it is stopped, idle, too large or outdated."""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

import msgspec

import trivet
from trivet.common.threads import prepared_type
from trivet.errors import TrivetError
from trivet.serve.resident import code_search as code_calls
from trivet.serve.resident import hook_client
from trivet.serve.resident import protocol as calls
from trivet.serve.resident.open_stores import CodeIndexes, Pages, Stores
from trivet.serve.resident.protocol import (
    END,
    PAGE,
    STATUS,
    HookCall,
    Lock,
    PageCall,
    hook_call_of,
    socket_file,
)
from trivet.serve.resident.sync_worker import SyncWorker
from trivet.settings import Settings
from trivet.trivet import Trivet

logger = logging.getLogger("trivet.serve.resident")

# Fixed, because the store keeps a connection per thread.
THREADS = 8
# Seconds to receive a request: clients send at once, or have died.
RECEIVE_SECONDS = 10.0
# Interval of the checks for idleness and memory.
CHECK_SECONDS = 5.0
END_SECONDS = 15.0
WAITING_CLIENTS = 64
# A service manager restarts a process that ends with this.
TOO_LARGE = 75

Hook = Callable[[Trivet, HookCall], bytes]


class Status(msgspec.Struct, frozen=True, kw_only=True):
    pid: int
    version: str
    seconds: float
    memory_mb: float
    memory_limit_mb: int
    idle_seconds: float
    idle_limit_seconds: float
    stores: tuple[str, ...]
    calls: int
    failed: int
    hooks: dict[str, int]
    code: tuple[str, ...] = ()  # folders with an open code index


class Server:
    def __init__(self, settings: Settings, hook: Hook) -> None:
        self._settings = settings
        self._hook = hook
        self._stores = Stores()
        self._code_indexes = CodeIndexes()
        self._pages = Pages(self._stores.shared)
        self._started = self._used = time.monotonic()
        self._counts: Counter[str] = Counter()
        self._hooks: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._running = 0
        self._status = 0
        self._wakes, self._wake = socket.socketpair()
        self._wake.setblocking(False)
        self._code = _code_stamp()

    def run(self, ready: Callable[[], None]) -> int:
        with self._wakes, self._wake:
            lock = Lock()
            try:
                return self._run(ready)
            finally:
                self._pages.close()
                self._code_indexes.close()
                self._stores.close()
                lock.release()

    def _run(self, ready: Callable[[], None]) -> int:
        with self._stores.using(self._settings) as memory:
            _warm_up(memory)
        syncing = SyncWorker(lambda: self._stores.using(self._settings))
        with _listener() as listener:
            self._set_signals()
            syncing.start()
            ready()
            try:
                self._serve(listener)
            finally:
                syncing.stop()
                # Later clients do without the process or start a new one.
                socket_file().unlink(missing_ok=True)
        return self._status

    def end(self, status: int = 0) -> None:
        self._status = self._status or status
        try:
            self._wake.send(b"x")
        except BlockingIOError:
            return  # the buffer is full of wake-ups

    def _serve(self, listener: socket.socket) -> None:
        threads = ThreadPoolExecutor(THREADS, thread_name_prefix="trivet-resident")
        try:
            seconds = min(CHECK_SECONDS, self._settings.resident_idle_seconds or CHECK_SECONDS)
            while True:
                readable, _, _ = select.select([listener, self._wakes], [], [], seconds)
                if self._wakes in readable or self._should_stop():
                    return
                if listener in readable:
                    self._accept(listener, threads)
        finally:
            listener.close()
            _drain(threads)

    def _accept(self, listener: socket.socket, threads: ThreadPoolExecutor) -> None:
        connection, _ = listener.accept()
        if hook_client.peer_user(connection) not in (None, os.getuid()):
            self._count("failed")
            logger.warning("A connection from another user was refused.")
            connection.close()
            return
        with self._lock:
            self._running += 1
        threads.submit(self._serve_connection, connection)

    def _serve_connection(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.settimeout(RECEIVE_SECONDS)
                parts = hook_client.receive(connection)
                connection.sendall(hook_client.pack(self._answer(parts)))
        except (OSError, hook_client.ResidentUnavailable):
            # The client disconnected; its request is complete or never arrived.
            self._count("failed")
        finally:
            with self._lock:
                self._running -= 1
                self._used = time.monotonic()

    def _answer(self, parts: list[bytes]) -> tuple[bytes, bytes]:
        try:
            return self._dispatch(parts)
        except TrivetError as error:
            return calls.ERROR, calls.failure_of(error)
        except Exception as error:  # answered, so that other calls go on
            self._count("failed")
            logger.exception("A call failed")
            return calls.DECLINED, f"it failed ({type(error).__name__})".encode()

    def _dispatch(self, parts: list[bytes]) -> tuple[bytes, bytes]:
        kind = parts[0] if parts else b""
        if kind == STATUS:
            return calls.OK, msgspec.json.encode(self._status_report())
        if kind == END:
            self.end()
            return calls.OK, b""
        self._count("calls")
        if kind == b"hook" and len(parts) == 6 and parts[1] == hook_client.PROTOCOL:
            return self._handle_hook(parts)
        if kind == code_calls.CODE and len(parts) == 3:
            return self._handle_code(parts[1].decode(errors="replace"), parts[2])
        if kind == PAGE and len(parts) == 3:
            return self._handle_page(parts[1].decode(errors="replace"), parts[2])
        if kind == calls.CALL and len(parts) == 3:
            return self._handle_call(parts[1].decode(), parts[2])
        return calls.DECLINED, b"it does not know this message"

    def _handle_call(self, version: str, message: bytes) -> tuple[bytes, bytes]:
        if version != trivet.__version__:
            return calls.VERSION_MISMATCH, trivet.__version__.encode()
        call = msgspec.json.decode(message, type=prepared_type(calls.Call))
        if call.environment != calls.call_environment(call.settings, os.environ):
            return calls.DECLINED, b"its environment differs"
        with self._stores.using(call.settings) as memory:
            body = calls.perform(memory, call)
        if len(body) > hook_client.MAX_MESSAGE_BYTES - 1024:
            return calls.DECLINED, b"the answer is too long to send"
        return calls.OK, body

    def _handle_code(self, version: str, message: bytes) -> tuple[bytes, bytes]:
        if version != trivet.__version__:
            return calls.VERSION_MISMATCH, trivet.__version__.encode()
        call = msgspec.json.decode(message, type=code_calls.CodeCall)
        if call.environment != code_calls.index_environment(os.environ):
            return calls.DECLINED, b"its environment differs"
        if call.question is None:
            self._code_indexes.open_soon(call.folder)
            return calls.OK, b""
        found = self._code_indexes.answer(call.folder, call.question)
        if found is None:
            return calls.DECLINED, b"the index of this folder is not open"
        return calls.OK, msgspec.json.encode(found)

    def _handle_page(self, version: str, message: bytes) -> tuple[bytes, bytes]:
        if version != trivet.__version__:
            return calls.VERSION_MISMATCH, trivet.__version__.encode()
        call = msgspec.json.decode(message, type=PageCall)
        if call.environment != calls.call_environment(call.settings, os.environ):
            return calls.DECLINED, b"its environment differs"
        return calls.OK, self._pages.link(call.settings).encode()

    def _handle_hook(self, parts: list[bytes]) -> tuple[bytes, bytes]:
        call = msgspec.structs.replace(hook_call_of(parts[2:]), code=self._code_indexes.offer)
        settings = call.settings
        same = calls.call_environment(settings, call.environment) == calls.call_environment(
            settings, os.environ
        )
        if settings.resident == "off" or not same:
            return calls.DECLINED, b"its settings or environment differ"
        try:
            with self._stores.using(settings) as memory:
                answer = self._hook(memory, call)
        except Exception as error:  # noqa: BLE001 - logged where `trivet status` counts it
            variables = {
                os.fsencode(name): os.fsencode(value) for name, value in call.environment.items()
            }
            hook_client.log_failure(variables, [call.moment], f"{type(error).__name__}: {error}")
            self._count(f"{call.moment} failed", self._hooks)
            return calls.OK, b""
        self._count(f"{call.moment} {'answered' if answer else 'silent'}", self._hooks)
        return calls.OK, answer

    def _should_stop(self) -> bool:
        self._code_indexes.close_idle()
        self._pages.close_idle()
        with self._lock:
            idle = 0.0 if self._running else time.monotonic() - max(self._used, self._pages.used)
        limit = self._settings.resident_idle_seconds
        if memory_mb() > self._settings.resident_memory_mb:
            logger.warning(
                "More than %s MB of memory in use; the process ends.",
                self._settings.resident_memory_mb,
            )
            self._status = TOO_LARGE
            return True
        return bool(limit and idle > limit) or _code_stamp() != self._code

    def _status_report(self) -> Status:
        moment = time.monotonic()
        return Status(
            pid=os.getpid(),
            version=trivet.__version__,
            seconds=round(moment - self._started, 1),
            memory_mb=round(memory_mb(), 1),
            memory_limit_mb=self._settings.resident_memory_mb,
            idle_seconds=round(moment - self._used, 1),
            idle_limit_seconds=self._settings.resident_idle_seconds,
            stores=self._stores.paths,
            calls=self._counts["calls"],
            failed=self._counts["failed"],
            hooks=dict(self._hooks),
            code=self._code_indexes.folders,
        )

    def _count(self, name: str, counts: Counter[str] | None = None) -> None:
        with self._lock:
            (self._counts if counts is None else counts)[name] += 1

    def _set_signals(self) -> None:
        def end(number: int, frame: FrameType | None) -> None:
            self.end()

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, end)


def set_up_logs() -> None:
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )


def memory_mb() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def _listener() -> socket.socket:
    """Bind the socket; while we hold the lock, an old socket file is a killed process's."""
    file = socket_file()
    file.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o177)
        try:
            listener.bind(str(file))
        finally:
            os.umask(before)
        listener.listen(WAITING_CLIENTS)
    except BaseException:
        listener.close()
        raise
    return listener


def _warm_up(memory: Trivet) -> None:
    if memory.server is not None:
        return  # a server has its own models, or is unreachable
    memory.recall("ready", limit=1, relevance_at_least=1.0)
    if memory.engine.embedding.local:
        memory.engine.embedding.probe()


def _drain(threads: ThreadPoolExecutor) -> None:
    done = threading.Thread(target=threads.shutdown, name="trivet-ending", daemon=True)
    done.start()
    done.join(END_SECONDS)
    if done.is_alive():
        logger.error(
            "A call still ran after %s s and is cut off; the store stays intact.", END_SECONDS
        )
        socket_file().unlink(missing_ok=True)
        os._exit(1)


def _code_stamp() -> tuple[int, int]:
    """Return a value that changes with the installed version."""
    try:
        status = Path(trivet.__file__).stat()
    except OSError:
        return (0, 0)
    return status.st_mtime_ns, status.st_size
