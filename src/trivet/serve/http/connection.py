"""Closes connections that a client holds open for nothing: with a head that never ends (slowloris), or with a body
that goes on after its answer."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from trivet.client.problems import MEDIA_TYPE
from trivet.serve.http.errors import Malformed, problem_response

# A head is a few kilobytes: who needs longer does not mean it.
HEAD_SECONDS = 10.0
# Each costs a file descriptor and some memory; beyond, the proxy in front should queue.
MOST_CONNECTIONS = 2_000


class Connection(H11Protocol):
    """uvicorn's own, with a time limit wherever it waits for the client outside a request."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self._limit = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._busy():
            self._lift_limit()
        elif self._limit is None:
            self._limit = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lift_limit()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP is answered like every other error."""
        answer = problem_response(Malformed("This is not an HTTP request that can be read."), str(uuid.uuid4()))
        body = bytes(answer.body)
        headers: list[tuple[bytes, bytes]] = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        events: list[Any] = [
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ]
        for event in events:
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _lift_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def _give_up(self) -> None:
        self._limit = None
        if not self._busy():
            self.transport.abort()
