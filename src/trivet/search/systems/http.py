"""A member that is asked over HTTP. Redirects are refused: they would carry key and query to whom nobody named."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable

import anyio
import httpx2

from trivet.search.systems.formats import decoded
from trivet.search.systems.key import key_of
from trivet.search.systems.read import raw_hits
from trivet.search.systems.reported_hits import Asked, MemberFailed, Raw
from trivet.search.systems.template import filled_address, filled_value
from trivet.settings.systems import Member


def ask_http(member: Member, asked: Asked, end: float) -> Iterable[Raw]:
    return raw_hits(decoded(anyio.run(_answer, member, asked, end).decode("utf-8", "replace")), member)


async def _answer(member: Member, asked: Asked, end: float) -> bytes:
    """Everything together within the time: a server that drips its answer cannot stretch it."""
    with anyio.move_on_after(max(0.0, end - time.monotonic())):
        try:
            return await _received(member, asked)
        except httpx2.HTTPError as error:
            raise MemberFailed(f"it cannot be reached ({type(error).__name__})", str(error)) from None
    raise MemberFailed("it did not answer in time")


async def _received(member: Member, asked: Asked) -> bytes:
    method = member.method or ("GET" if member.body is None else "POST")
    body = None if member.body is None else json.dumps(filled_value(member.body, member, asked)).encode()
    headers = {"Accept": "application/json", **({"Content-Type": "application/json"} if body else {}), **key_of(member)}
    received = bytearray()
    async with (
        httpx2.AsyncClient(follow_redirects=False, trust_env=False, timeout=None) as client,
        client.stream(method, filled_address(member, asked), content=body, headers=headers) as response,
    ):
        async for chunk in response.aiter_bytes():
            received += chunk
            if len(received) > member.most_bytes:
                raise MemberFailed(f"its answer is larger than {member.most_bytes} bytes")
        if not response.is_success:
            raise MemberFailed(f"it answered HTTP {response.status_code}", received.decode("utf-8", "replace"))
    return bytes(received)
