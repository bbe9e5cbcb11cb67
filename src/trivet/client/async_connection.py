"""The same as connection.py for programs with an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

import anyio
import httpx2
from msgspec import UNSET

from trivet.client.attempts import Attempts, broken_export, broken_import
from trivet.client.call import Call, arguments_of, call_of, result_of
from trivet.client.error_response import check_lines, checked
from trivet.client.lines import Lines, chunks
from trivet.client.options import closed, options, own_scope
from trivet.settings import Settings
from trivet.types import Progress


class AsyncConnection:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._http = httpx2.AsyncClient(**options(settings))

    async def do(self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """What `method` of the facade does, done by the server."""
        return await self._ask(self._call(method, arguments_of(method, args, kwargs)))

    async def carry(self, method: Callable[..., Any], lines: Iterable[str], progress: Progress | None) -> Any:
        """Sends lines as they are read. They are gone then, so there is one attempt."""
        call = self._call(method, {})

        async def body() -> AsyncIterator[bytes]:
            for piece in chunks(lines, progress):
                yield piece

        try:
            response = await self._http.request(call.method, call.path, content=body(), headers=call.headers)
        except httpx2.RequestError as error:
            raise broken_import(error, self.settings.path) from None
        return result_of(call, checked(response, self.settings))

    async def receive(self, method: Callable[..., Any], kwargs: Mapping[str, Any]) -> AsyncIterator[str]:
        call = self._call(method, kwargs)
        lines = Lines()
        try:
            async with self._http.stream(call.method, call.path, headers=call.headers) as response:
                if not response.is_success:
                    await response.aread()
                check_lines(response, self.settings)
                async for piece in response.aiter_bytes():
                    for line in lines.of(piece):
                        yield line
        except httpx2.RequestError as error:
            raise broken_export(error, self.settings.path) from None
        for line in lines.last():
            yield line

    async def close(self) -> None:
        await self._http.aclose()

    def _call(self, method: Callable[..., Any], arguments: Mapping[str, Any]) -> Call:
        call = call_of(method.__name__, arguments, own_scope(self.settings))
        if self._http.is_closed:
            raise closed(self.settings.path)
        return call

    async def _ask(self, call: Call) -> Any:
        if call.known is not UNSET:
            return call.known
        attempts = Attempts(call, self.settings.path)
        while True:
            try:
                response = await self._http.request(call.method, call.path, content=call.body, headers=call.headers)
            except httpx2.RequestError as error:
                await anyio.sleep(attempts.after_loss(error))
                continue
            pause = attempts.after_answer(response.status_code, response.headers)
            if pause is None:
                return result_of(call, checked(response, self.settings))
            await anyio.sleep(pause)
