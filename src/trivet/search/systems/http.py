"""A system that is asked over HTTP. Redirects are refused: they would carry key and query to an undeclared address."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable

import anyio
import httpx2

from trivet.search.systems.reply import Raw, SystemFailed, SystemQuery, decoded, raw_hits
from trivet.search.systems.request import filled_address, filled_value, key_of
from trivet.settings.systems import OtherSystem


def ask_http(system: OtherSystem, asked: SystemQuery, end: float) -> Iterable[Raw]:
    return raw_hits(decoded(anyio.run(_answer, system, asked, end).decode("utf-8", "replace")), system)


async def _answer(system: OtherSystem, asked: SystemQuery, end: float) -> bytes:
    """Everything together within the time: a server that drips its answer cannot stretch it."""
    with anyio.move_on_after(max(0.0, end - time.monotonic())):
        try:
            return await _received(system, asked)
        except httpx2.HTTPError as error:
            raise SystemFailed(f"it cannot be reached ({type(error).__name__})", str(error)) from None
    raise SystemFailed("it did not answer in time")


async def _received(system: OtherSystem, asked: SystemQuery) -> bytes:
    method = system.method or ("GET" if system.body is None else "POST")
    body = None if system.body is None else json.dumps(filled_value(system.body, system, asked)).encode()
    headers = {"Accept": "application/json", **({"Content-Type": "application/json"} if body else {}), **key_of(system)}
    received = bytearray()
    async with (
        httpx2.AsyncClient(follow_redirects=False, trust_env=False, timeout=None) as client,
        client.stream(method, filled_address(system, asked), content=body, headers=headers) as response,
    ):
        async for chunk in response.aiter_bytes():
            received += chunk
            if len(received) > system.most_bytes:
                raise SystemFailed(f"its answer is larger than {system.most_bytes} bytes")
        if not response.is_success:
            raise SystemFailed(f"it answered HTTP {response.status_code}", received.decode("utf-8", "replace"))
    return bytes(received)
