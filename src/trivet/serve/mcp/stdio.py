"""Standard input and output for a server that ends well: on a signal or at the end of input, every request that was
received is answered before the streams close."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import chain
from types import FrameType
from typing import Any, BinaryIO, Self, cast

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

Received = SessionMessage | Exception

# How far the reading thread may run ahead of the server.
LINES_AHEAD = 64


class Lines:
    """The lines of standard input, until it ends or `end` is called; before them those that were read already.

    A daemon thread reads them: a blocked read cannot be cancelled, and must not hold up the end of the process.
    """

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
        with contextlib.suppress(RuntimeError):  # the loop is closed: no task listens any more
            self._loop.call_soon_threadsafe(self._received.put_nowait, line)


class Unanswered:
    """The requests that were received and not answered yet."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._changed = asyncio.Event()

    def received(self, item: SessionMessage) -> None:
        message = item.message
        if isinstance(message, JSONRPCRequest):
            self._ids.add(str(message.id))
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._settle((message.params or {}).get("requestId"))  # the protocol forbids an answer to these

    def sent(self, item: SessionMessage) -> None:
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._settle(item.message.id)

    async def none_left(self) -> None:
        while self._ids:
            self._changed.clear()
            await self._changed.wait()

    def _settle(self, id: object) -> None:
        self._ids.discard(str(id))
        self._changed.set()


Streams = tuple[MemoryObjectReceiveStream[Received], MemoryObjectSendStream[SessionMessage]]


@contextlib.asynccontextmanager
async def standard_streams(
    stream: BinaryIO, read_already: Sequence[bytes] = (), answered: Any = None
) -> AsyncIterator[Streams]:
    """The messages in and out. The answer to the request of the id `answered` has been sent before, and is dropped."""
    lines, unanswered = Lines(stream, read_already), Unanswered()
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
            await unanswered.none_left()

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
        # Its own reader would sit in a thread that only more input can wake.
        stdin = cast("anyio.AsyncFile[str]", lines)
        async with stdio_server(stdin) as (read, write), anyio.create_task_group() as tasks:
            tasks.start_soon(inward, read)
            tasks.start_soon(outward, write)
            yield from_client, to_client


def _is_answer_to(id: Any, item: SessionMessage) -> bool:
    return isinstance(item.message, JSONRPCResponse | JSONRPCError) and item.message.id == id


def _not_a_message() -> JSONRPCError:
    """The server itself passes over a line it cannot read, and a client would wait for its answer for ever."""
    text = "This line is not a JSON-RPC message in valid UTF-8 (a lone surrogate is not). Nothing was done."
    return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=PARSE_ERROR, message=text))


@contextlib.contextmanager
def _ending_on_signals(lines: Lines) -> Iterator[None]:
    """The first signal ends the input, and with it the server; a second one has its usual force."""
    names = [name for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in (getattr(signal, name) for name in names)}

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
