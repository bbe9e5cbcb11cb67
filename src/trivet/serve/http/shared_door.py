"""How the processes of one server share who comes: the one with fewer connections is the quicker to let them in.

Left to themselves, the first process that wakes up takes all that stand at the door. Of clients that come together, as
the connections of a pool do, one process would have all for as long as they stay, and the other cores none.
"""

from __future__ import annotations

import asyncio
import logging
import socket

from trivet.serve.http.server import Server

# The longest that a process leaves a newcomer to the others, and with how many connections it waits half of that.
LONGEST_SECONDS = 0.005
HALF_AT = 8
# After the machine has no room for another connection. Those at the door wait.
FULL_SECONDS = 1.0
logger = logging.getLogger("trivet.serve.http")


def leaves_to_others(connections: int) -> float:
    """So many seconds a process waits with so many connections before it takes another."""
    return LONGEST_SECONDS * connections / (connections + HALF_AT)


class SharingServer(Server):
    """Lets in one at a time from a socket that other processes have too."""

    _door: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        assert sockets is not None, "it is given the socket that all share"
        [listener] = sockets
        self._door = asyncio.create_task(self._let_in(listener))
        self._door.add_done_callback(self._closed)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._door is not None:
            self._door.cancel()
            await asyncio.wait({self._door})
        await super().shutdown(sockets)

    async def _let_in(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        listener.setblocking(False)
        while True:
            await _readable(listener)
            await asyncio.sleep(leaves_to_others(len(self.server_state.connections)))
            try:
                client, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                continue  # another process was quicker, or they left
            except OSError as error:
                logger.error("No connection can be accepted for now: %s", error)
                await asyncio.sleep(FULL_SECONDS)
                continue
            await loop.connect_accepted_socket(self._connection, client)

    def _connection(self) -> asyncio.Protocol:
        protocol: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol

    def _closed(self, door: asyncio.Task[None]) -> None:
        """Where it closed by an error this process would serve nobody: it ends, and another takes its place."""
        if not door.cancelled() and door.exception() is not None:
            logger.error("The process lets nobody in any more, and ends.", exc_info=door.exception())
            self.should_exit = True


async def _readable(listener: socket.socket) -> None:
    """Until somebody stands at the door."""
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    loop.add_reader(listener, came.set)
    try:
        await came.wait()
    finally:
        loop.remove_reader(listener)
