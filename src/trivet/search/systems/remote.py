"""External systems over HTTP, and tools of MCP servers.

Redirects are refused: they would send key and query to an undeclared address. The SDK's MCP client
is not used: it gives a hung server four more seconds and reads lines of any length.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

import anyio
import httpx2

from trivet.search.systems.command import Program
from trivet.search.systems.messages import (
    RawHit,
    SystemFailed,
    SystemQuery,
    at,
    auth_headers,
    decoded,
    filled_address,
    filled_value,
    raw_hits,
    unmarked,
)
from trivet.settings.systems import ExternalSystem


def ask_http(system: ExternalSystem, asked: SystemQuery, end: float) -> Iterable[RawHit]:
    return raw_hits(
        decoded(anyio.run(_answer, system, asked, end).decode("utf-8", "replace")), system
    )


async def _answer(system: ExternalSystem, asked: SystemQuery, end: float) -> bytes:
    """Limit the time of the whole answer, so that a slow stream cannot extend it."""
    with anyio.move_on_after(max(0.0, end - time.monotonic())):
        try:
            return await _received(system, asked)
        except httpx2.HTTPError as error:
            raise SystemFailed(
                f"it cannot be reached ({type(error).__name__})", str(error)
            ) from None
    raise SystemFailed("it did not answer in time")


async def _received(system: ExternalSystem, asked: SystemQuery) -> bytes:
    method = system.method or ("GET" if system.body is None else "POST")
    body = (
        None
        if system.body is None
        else json.dumps(filled_value(system.body, system, asked)).encode()
    )
    headers = {
        "Accept": "application/json",
        **({"Content-Type": "application/json"} if body else {}),
        **auth_headers(system),
    }
    received = bytearray()
    async with (
        httpx2.AsyncClient(follow_redirects=False, trust_env=False, timeout=None) as client,
        client.stream(
            method, filled_address(system, asked), content=body, headers=headers
        ) as response,
    ):
        async for chunk in response.aiter_bytes():
            received += chunk
            if len(received) > system.most_bytes:
                raise SystemFailed(f"its answer is larger than {system.most_bytes} bytes")
        if not response.is_success:
            raise SystemFailed(
                f"it answered HTTP {response.status_code}", received.decode("utf-8", "replace")
            )
    return bytes(received)


PROTOCOL = "2025-06-18"
CLIENT = {"name": "trivet", "version": "1"}


def ask_mcp(system: ExternalSystem, asked: SystemQuery, end: float) -> Iterable[RawHit]:
    arguments = filled_value(system.arguments, system, asked)
    if isinstance(system.mcp, str):
        result = anyio.run(_at_address, system, arguments, end)
    else:
        result = _from_program(system, system.mcp, arguments, end)
    return raw_hits(_found(result), system)


def _from_program(
    system: ExternalSystem, command: Sequence[str], arguments: Any, end: float
) -> Any:
    with Program(command, system.environment, end, system.most_bytes) as child:
        hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": CLIENT}
        _result(child, 1, "initialize", hello)
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        child.send(_line(initialized))
        return _result(child, 2, "tools/call", {"name": system.tool, "arguments": arguments})


def _result(child: Program, id: int, method: str, params: Any) -> Any:
    child.send(_line({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    while (line := child.line()) is not None:
        message = decoded(line.decode("utf-8", "replace")) if line.strip() else None
        if isinstance(message, dict) and message.get("id") == id and "method" not in message:
            return _answered(message)
    raise child.complaint() or SystemFailed("it ended without an answer")


def _answered(message: dict[str, Any]) -> Any:
    if "error" in message:
        error = message["error"]
        raise SystemFailed("it refused the request", str(at(error, "message")))
    return message.get("result")


def _line(message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


async def _at_address(system: ExternalSystem, arguments: Any, end: float) -> Any:
    import httpx2
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    assert isinstance(system.mcp, str)
    with anyio.move_on_after(max(0.0, end - time.monotonic())):
        try:
            async with (
                httpx2.AsyncClient(
                    headers=auth_headers(system),
                    follow_redirects=False,
                    trust_env=False,
                    timeout=None,
                ) as client,
                streamable_http_client(
                    system.mcp,
                    http_client=client,
                    max_sse_event_size=system.most_bytes,
                    terminate_on_close=False,
                ) as (reading, writing),
                ClientSession(reading, writing) as session,
            ):
                await session.initialize()
                result = await session.call_tool(system.tool, arguments)
                return result.model_dump(mode="json", by_alias=True)
        except* Exception as failures:  # noqa: BLE001 - any transport error
            first = _first(failures)
            raise SystemFailed(
                f"it cannot be reached ({type(first).__name__})", str(first)
            ) from None
    raise SystemFailed("it did not answer in time")


def _first(failures: BaseExceptionGroup[Any]) -> BaseException:
    failure: BaseException = failures
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure


def _found(result: Any) -> Any:
    if not isinstance(result, dict):
        raise SystemFailed("its answer is not a tool result")
    content = result.get("content")
    texts = (
        [part.get("text") for part in content if isinstance(part, dict)]
        if isinstance(content, list)
        else []
    )
    text = next((text for text in texts if isinstance(text, str)), "")
    if result.get("isError"):
        raise SystemFailed("the tool failed", text)
    structured = result.get("structuredContent")
    return unmarked(structured) if structured is not None else decoded(text)
