"""MCP on standard streams, with a store that the first call opens.

At a signal or the end of input, every received request is answered before the streams close.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, Self, TypeVar, cast

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from trivet.serve.mcp.listings import (
    Handshake,
)
from trivet.serve.resident.client import open_memory
from trivet.settings import load_settings
from trivet.settings.locations import closest_store, missing_store_message
from trivet.trivet import Trivet

logger = logging.getLogger("trivet.serve")

T = TypeVar("T")

# Fixed, because the store keeps a connection per thread.
READ_THREADS = 8
# Separate, so that no write waits behind a slow recall.
WRITE_THREADS = 2


class LazyStore:
    """A store opened by the first call, with threads; failed opens are retried."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._memory: Trivet | None = None
        self._opening = threading.Lock()
        self._threads = ThreadPoolExecutor(READ_THREADS, thread_name_prefix="trivet-call")
        self._writing = ThreadPoolExecutor(WRITE_THREADS, thread_name_prefix="trivet-write")

    async def run(self, function: Callable[[Trivet], T], writes: bool = False) -> T:
        threads = self._writing if writes else self._threads
        return await asyncio.get_running_loop().run_in_executor(threads, self._apply, function)

    def close(self) -> None:
        for threads in (self._threads, self._writing):
            threads.shutdown(wait=True, cancel_futures=True)
        if self._memory is not None:
            self._memory.close()

    def _apply(self, function: Callable[[Trivet], T]) -> T:
        with self._opening:
            if self._memory is None:
                self._memory = self._opened()
        return function(self._memory)

    def _opened(self) -> Trivet:
        """Open or create the store; log another one nearby, as the path may be mistyped."""
        settings = load_settings(path=self._path)
        if (missing := missing_store_message(settings)) and closest_store(
            Path(settings.path).expanduser()
        ):
            logger.warning("%s", missing)
        return open_memory(self._path, model_soon=True)


def serve_on_standard_streams(
    path: str | None,
    build: Callable[[LazyStore], Server[Any]],
    stream: BinaryIO,
    greeted: Handshake,
) -> None:
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    store = LazyStore(path)
    try:
        anyio.run(_serve, build(store), stream, greeted)
    except* BrokenPipeError:
        logger.warning("The client disconnected without closing its streams.")
    finally:
        store.close()


async def _serve(server: Server[Any], stream: BinaryIO, greeted: Handshake) -> None:
    async with standard_streams(stream, greeted.lines, greeted.answered) as (read, write):
        await server.run(read, write, server.create_initialization_options())


Received = SessionMessage | Exception

# Lines that the reader may be ahead of the server.
LINES_AHEAD = 64


class InputLines:
    """Lines of standard input, read by a daemon thread: a blocked read cannot be canceled."""

    def __init__(self, stream: BinaryIO, read_already: Sequence[bytes]) -> None:
        self._stream = stream
        self._read_already = read_already
        self._loop = asyncio.get_running_loop()
        self._received: asyncio.Queue[str | None] = asyncio.Queue()
        self._room = threading.Semaphore(LINES_AHEAD)
        threading.Thread(target=self._read, name="trivet-stdin", daemon=True).start()

    def end(self) -> None:
        self._deliver(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        line = await self._received.get()
        if line is None:
            raise StopAsyncIteration
        self._room.release()
        return line

    def _read(self) -> None:
        for line in chain(self._read_already, self._stream):
            self._room.acquire()
            self._deliver(line.decode(errors="replace"))
        self._deliver(None)

    def _deliver(self, line: str | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed and nobody listens any more
            self._loop.call_soon_threadsafe(self._received.put_nowait, line)


class PendingRequests:
    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._changed = asyncio.Event()

    def received(self, item: SessionMessage) -> None:
        message = item.message
        if isinstance(message, JSONRPCRequest):
            self._ids.add(str(message.id))
        elif (
            isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled"
        ):
            # The protocol forbids an answer to a canceled request.
            self._remove((message.params or {}).get("requestId"))

    def sent(self, item: SessionMessage) -> None:
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._remove(item.message.id)

    async def all_answered(self) -> None:
        while self._ids:
            self._changed.clear()
            await self._changed.wait()

    def _remove(self, id: object) -> None:
        self._ids.discard(str(id))
        self._changed.set()


Streams = tuple[MemoryObjectReceiveStream[Received], MemoryObjectSendStream[SessionMessage]]


@contextlib.asynccontextmanager
async def standard_streams(
    stream: BinaryIO, read_already: Sequence[bytes] = (), answered: Any = None
) -> AsyncIterator[Streams]:
    """Yield the message streams; drop the answer to `answered`."""
    lines, unanswered = InputLines(stream, read_already), PendingRequests()
    to_server, from_client = anyio.create_memory_object_stream[Received]()
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage]()

    async def inward(read: Any) -> None:
        async with to_server:
            async for item in read:
                if isinstance(item, Exception):
                    await to_client.send(SessionMessage(_not_a_message()))
                    continue
                unanswered.received(item)
                await to_server.send(item)
            await unanswered.all_answered()

    async def outward(write: Any) -> None:
        async with write:
            dropped = answered is None
            async for item in from_server:
                if not dropped and _is_answer_to(answered, item):
                    dropped = True
                else:
                    await write.send(item)
                unanswered.sent(item)

    with _ending_on_signals(lines):
        # The library's reader would block in a thread that only input can wake.
        stdin = cast("anyio.AsyncFile[str]", lines)
        async with stdio_server(stdin) as (read, write), anyio.create_task_group() as tasks:
            tasks.start_soon(inward, read)
            tasks.start_soon(outward, write)
            yield from_client, to_client


def _is_answer_to(id: Any, item: SessionMessage) -> bool:
    return isinstance(item.message, JSONRPCResponse | JSONRPCError) and item.message.id == id


def _not_a_message() -> JSONRPCError:
    text = (
        "This line is not a JSON-RPC message in valid UTF-8 (a lone surrogate is invalid). "
        "Nothing was done."
    )
    return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=PARSE_ERROR, message=text))


@contextlib.contextmanager
def _ending_on_signals(lines: InputLines) -> Iterator[None]:
    """End the input at the first signal; the second has its default effect."""
    names = [name for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]
    before = {
        number: signal.getsignal(number) for number in (getattr(signal, name) for name in names)
    }

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        lines.end()

    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
