"""Streamed export and import; neither side holds more than a few chunks in memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from trivet.contract import Parameters, check
from trivet.serve.http.endpoints.endpoint import (
    NDJSON,
    Endpoint,
    Reply,
    ServerContext,
    authenticate,
    check_ndjson,
)
from trivet.serve.http.endpoints.verbs import arguments_of
from trivet.serve.http.errors import BodyTimedOut, Busy, TooLarge
from trivet.types import Caller, Imported


class ExportRequest(Parameters, frozen=True, kw_only=True):
    include_sensitive: Annotated[
        bool,
        Meta(description="Export sensitive memories too, in the clear; needs the right to reveal."),
    ] = False


def export_import_endpoints(context: ServerContext, streams: Streams) -> tuple[Endpoint, ...]:
    return (_export(context, streams), _import(context, streams))


def _export(context: ServerContext, streams: Streams) -> Endpoint:
    async def handle(request: Request) -> Response:
        caller = authenticate(request, "read")
        given = check(ExportRequest, await arguments_of(request, ExportRequest, True, context))
        if given.include_sensitive:
            authenticate(request, "reveal")

        def lines() -> Iterator[str]:
            with context.using(request) as memory:
                yield from memory.export(include_sensitive=given.include_sensitive)

        outflow = ExportStream(lines, lambda: context.tenants.recheck_caller(caller))
        streams.start(caller, outflow.make)
        chunks = outflow.chunks()
        first = await anext(chunks)  # an error before the first chunk can still set the status
        return _ExportResponse(outflow, _prepended(first, chunks))

    return Endpoint(
        name="export",
        method="GET",
        path="/v1/export",
        summary="Every memory with its history, then the links, as lines of JSON.",
        needs="read",
        request=ExportRequest,
        in_query=True,
        result=str,
        result_type=NDJSON,
        handle=handle,
    )


def _import(context: ServerContext, streams: Streams) -> Endpoint:
    async def handle(request: Request) -> Response:
        caller = authenticate(request, "write")
        check(Parameters, await arguments_of(request, Parameters, True, context))
        check_ndjson(request)
        settings = context.settings
        inflow = ImportStream(
            request,
            settings.server_import_bytes,
            settings.server_request_seconds,
            lambda: context.tenants.recheck_caller(caller),
        )

        def take_in() -> Imported:
            with context.using(request) as memory:
                return memory.import_(inflow.lines())

        imported = await streams.start(caller, take_in)
        return Reply(status=200, body=msgspec.json.encode(imported)).response()

    return Endpoint(
        name="import",
        method="POST",
        path="/v1/import",
        summary=(
            "Import the lines of an export, or plain memories with at least a `content`. "
            "Nothing is deleted."
        ),
        needs="write",
        request=str,
        body_type=NDJSON,
        result=Imported,
        handle=handle,
    )


class _ExportResponse(StreamingResponse):
    def __init__(self, outflow: ExportStream, chunks: AsyncIterator[bytes]) -> None:
        super().__init__(chunks, media_type=NDJSON)
        self._outflow = outflow

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._outflow.stop()


async def _prepended(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk


CHUNK_BYTES = 64 * 1024
# Chunks by which the store may be ahead of the client.
MAX_CHUNKS_AHEAD = 4
# Bounds a line, which holds a memory with its whole history.
MAX_LINE_BYTES = 16 * 2**20
# Each occupies a thread for as long as its client takes.
STREAMS_AT_ONCE = 4
STREAMS_PER_USER = 2

T = TypeVar("T")


class Streams:
    """Separate threads for streams: slow clients block no other requests."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(STREAMS_AT_ONCE, thread_name_prefix="trivet-stream")
        self._running: dict[Future[Any], tuple[str, str]] = {}

    def start(self, caller: Caller, function: Callable[[], T]) -> asyncio.Future[T]:
        user = (caller.tenant, caller.user)
        if (
            len(self._running) >= STREAMS_AT_ONCE
            or list(self._running.values()).count(user) >= STREAMS_PER_USER
        ):
            raise Busy(
                f"At most {STREAMS_AT_ONCE} exports and imports run at a time, and "
                f"{STREAMS_PER_USER} "
                "per user. Nothing was done; try again later."
            )
        work = self._threads.submit(function)
        self._running[work] = user
        work.add_done_callback(lambda done: self._running.pop(done, None))
        return asyncio.wrap_future(work)

    def close(self, seconds: float) -> bool:
        self._threads.shutdown(wait=False)
        return not wait(set(self._running), timeout=seconds).not_done


class ExportStream:
    """Lines from a thread, which waits when it is too far ahead of the reader."""

    def __init__(self, lines: Callable[[], Iterable[str]], check: Callable[[], None]) -> None:
        """Prepare the stream; `check` raises when the caller has lost access."""
        self._lines = lines
        self._check = check
        self._loop = asyncio.get_running_loop()
        self._made: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue()
        self._room = threading.Semaphore(MAX_CHUNKS_AHEAD)
        self._unread = False

    def make(self) -> None:
        try:
            for chunk in _chunks(self._lines()):
                self._room.acquire()
                if self._unread:
                    return
                self._check()
                self._deliver(chunk)
            self._deliver(None)
        except Exception as error:  # noqa: BLE001 - raised again by the reader
            self._deliver(error)

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            while (chunk := await self._made.get()) is not None:
                if isinstance(chunk, BaseException):
                    raise chunk
                self._room.release()
                yield chunk
        finally:
            self.stop()

    def stop(self) -> None:
        self._unread = True
        self._room.release()

    def _deliver(self, chunk: bytes | BaseException | None) -> None:
        self._loop.call_soon_threadsafe(self._made.put_nowait, chunk)


class ImportStream:
    def __init__(
        self, request: Request, most_bytes: int, seconds: float, check: Callable[[], None]
    ) -> None:
        self._check = check
        self._body = aiter(request.stream())
        self._most_bytes = most_bytes
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()

    def lines(self) -> Iterator[str]:
        """Yield lines, with surrogates for invalid UTF-8, so that import can name the line."""
        parts: list[bytes] = []
        size = total = 0
        while chunk := self._next_chunk():
            total += len(chunk)
            if total > self._most_bytes:
                raise TooLarge(
                    _aborted_message(f"The import has more than {self._most_bytes:,} bytes.")
                )
            first, *others = chunk.split(b"\n")
            parts.append(first)
            size += len(first)
            for other in others:
                yield _text(parts)
                parts, size = [other], len(other)
            if size > MAX_LINE_BYTES:
                raise TooLarge(_aborted_message(f"A line has more than {MAX_LINE_BYTES:,} bytes."))
        yield _text(parts)

    def _next_chunk(self) -> bytes:
        chunk = asyncio.run_coroutine_threadsafe(self._next(), self._loop).result()
        self._check()
        return chunk

    async def _next(self) -> bytes:
        try:
            async with asyncio.timeout(self._seconds):
                return await anext(self._body, b"")
        except TimeoutError:
            raise BodyTimedOut(
                _aborted_message(f"No more data of the import arrived for {self._seconds:g} s.")
            ) from None


def _chunks(lines: Iterable[str]) -> Iterator[bytes]:
    chunk = bytearray()
    for line in lines:
        chunk += line.encode()
        chunk += b"\n"
        if len(chunk) >= CHUNK_BYTES:
            yield bytes(chunk)
            chunk.clear()
    if chunk:
        yield bytes(chunk)


def _text(parts: list[bytes]) -> str:
    return b"".join(parts).decode("utf-8", "surrogateescape")


def _aborted_message(reason: str) -> str:
    return f"{reason} Earlier lines may be stored already; importing the same lines again is safe."
