"""The asynchronous counterpart of connection.py, for programs with an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, TypeVar

import anyio
import httpx2
from msgspec import UNSET

from trivet.client import call
from trivet.client.call import Call, LineReader, encode_chunks, result_of
from trivet.client.connection import client_options, closed, configured_scope
from trivet.client.responses import (
    Attempts,
    check_export_response,
    checked_body,
    export_interrupted,
    import_interrupted,
)
from trivet.contract import Remember, Request
from trivet.settings import Settings
from trivet.types import Imported, Progress, Remembered

T = TypeVar("T")


class AsyncConnection:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._http = httpx2.AsyncClient(**client_options(settings))

    async def perform(self, request: Request[T]) -> T:
        answer: T = await self._ask(call.call_of(request, configured_scope(self.settings)))
        return answer

    async def remember_many(
        self, memories: Iterable[Mapping[str, Any] | Remember]
    ) -> list[Remembered]:
        stored: list[Remembered] = await self._ask(
            call.remember_many(memories, configured_scope(self.settings))
        )
        return stored

    async def diff(self, id: str, older: int, newer: int, reveal: bool) -> str:
        return str(await self._ask(call.diff(id, older, newer, reveal)))

    async def import_(self, lines: Iterable[str], progress: Progress | None) -> Imported:
        """Send lines once: they cannot be read again for a retry."""
        self._check_open()
        sent = call.import_()

        async def body() -> AsyncIterator[bytes]:
            for piece in encode_chunks(lines, progress):
                yield piece

        try:
            response = await self._http.request(
                sent.method, sent.path, content=body(), headers=sent.headers
            )
        except httpx2.RequestError as error:
            raise import_interrupted(error, self.settings.path) from None
        imported: Imported = result_of(sent, checked_body(response, self.settings))
        return imported

    async def export(self, include_sensitive: bool) -> AsyncIterator[str]:
        self._check_open()
        sent, lines = call.export(include_sensitive), LineReader()
        try:
            async with self._http.stream(sent.method, sent.path, headers=sent.headers) as response:
                if not response.is_success:
                    await response.aread()
                check_export_response(response, self.settings)
                async for piece in response.aiter_bytes():
                    for line in lines.of(piece):
                        yield line
        except httpx2.RequestError as error:
            raise export_interrupted(error, self.settings.path) from None
        for line in lines.last():
            yield line

    async def close(self) -> None:
        await self._http.aclose()

    def _check_open(self) -> None:
        if self._http.is_closed:
            raise closed(self.settings.path)

    async def _ask(self, call: Call) -> Any:
        self._check_open()
        if call.known is not UNSET:
            return call.known
        attempts = Attempts(call, self.settings.path)
        while True:
            try:
                response = await self._http.request(
                    call.method, call.path, content=call.body, headers=call.headers
                )
            except httpx2.RequestError as error:
                await anyio.sleep(attempts.after_connection_error(error))
                continue
            pause = attempts.after_response(response.status_code, response.headers)
            if pause is None:
                return result_of(call, attempts.checked_body(response, self.settings))
            await anyio.sleep(pause)
