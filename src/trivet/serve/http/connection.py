"""Closes connections that a client holds open for nothing: with a head that never ends (slowloris), with a body that
goes on after its answer, with an answer that is not read, or by the thousand.

When there is no room for another connection, one that waits for nothing goes: whoever comes to ask is let in.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from trivet.client.problems import MEDIA_TYPE
from trivet.serve.http.errors import Malformed, problem_response

# A head is a few kilobytes: who needs longer does not mean it.
HEAD_SECONDS = 10.0
# Each costs a file descriptor and some memory. Beyond, idle ones are closed to let others in.
MOST_CONNECTIONS = 2_000
# So many go together, so that a flood of connections does not have the idle ones sorted for each of them.
CLOSED_TOGETHER = 50
# How long the rest of a finished answer is kept for a client that does not read it.
UNREAD_SECONDS = 60.0


class Connection(H11Protocol):
    """uvicorn's own, with a time limit wherever it waits for the client outside a request."""

    _limit: asyncio.TimerHandle | None = None
    _idle_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        if len(self.connections) > MOST_CONNECTIONS and not self._make_room():
            transport.abort()
            return
        self._limit = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._busy():
            self._lift_limit()
        elif self._limit is None:
            self._limit = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self.loop.call_later(UNREAD_SECONDS, self._give_up_writing)

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

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _make_room(self) -> bool:
        """Ends the connections that have been idle for longest, of the address that has most of them."""
        idle = [one for one in self.connections if isinstance(one, Connection) and one is not self and not one._busy()]
        if not idle:
            return False
        [(greedy, _)] = Counter(one._address for one in idle).most_common(1)
        theirs = sorted((one for one in idle if one._address == greedy), key=lambda one: one._idle_since)
        for one in theirs[:CLOSED_TOGETHER]:
            self.connections.discard(one)  # at once: it hears of its end only after those that come now
            one.transport.abort()
        return True

    def _lift_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def _give_up(self) -> None:
        self._limit = None
        if not self._busy():
            self.transport.abort()

    def _give_up_writing(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()
