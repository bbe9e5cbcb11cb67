"""Export and import, streamed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from trivet.contract import Parameters, check
from trivet.serve.http.endpoint import NDJSON, Endpoint, Reply, ServerContext, caller_of
from trivet.serve.http.parse_request import check_ndjson
from trivet.serve.http.streams import Inflow, Outflow, Streams
from trivet.serve.http.verb_endpoints import arguments_of
from trivet.types import Imported


class ExportRequest(Parameters, frozen=True, kw_only=True):
    include_sensitive: Annotated[
        bool, Meta(description="Export sensitive memories too, in the clear; needs the right to reveal.")
    ] = False


def export_import_endpoints(context: ServerContext, streams: Streams) -> tuple[Endpoint, ...]:
    return (_export(context, streams), _import(context, streams))


def _export(context: ServerContext, streams: Streams) -> Endpoint:
    async def handle(request: Request) -> Response:
        caller = caller_of(request, "read")
        given = check(ExportRequest, await arguments_of(request, ExportRequest, True, context))
        if given.include_sensitive:
            caller_of(request, "reveal")

        def lines() -> Iterator[str]:
            with context.using(request) as memory:
                yield from memory.export(include_sensitive=given.include_sensitive)

        outflow = Outflow(lines, lambda: context.tenants.check_still(caller))
        streams.start(caller, outflow.make)
        chunks = outflow.chunks()
        first = await anext(chunks)  # an error before it can still be told by its status
        return _Exported(outflow, _after(first, chunks))

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
        caller = caller_of(request, "write")
        check(Parameters, await arguments_of(request, Parameters, True, context))
        check_ndjson(request)
        settings = context.settings
        inflow = Inflow(
            request,
            settings.server_import_bytes,
            settings.server_request_seconds,
            lambda: context.tenants.check_still(caller),
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
        summary="Take in lines of an export, or plain memories with at least a `content`. Nothing here is deleted.",
        needs="write",
        request=str,
        body_type=NDJSON,
        result=Imported,
        handle=handle,
    )


class _Exported(StreamingResponse):
    """However the answer ends, the thread that makes it is told."""

    def __init__(self, outflow: Outflow, chunks: AsyncIterator[bytes]) -> None:
        super().__init__(chunks, media_type=NDJSON)
        self._outflow = outflow

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._outflow.stop()


async def _after(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk
