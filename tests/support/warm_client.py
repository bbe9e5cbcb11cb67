"""Client of `warm_python`: has a forked process do what Python would do with the arguments.

It starts in a few milliseconds, so it imports little.
"""

import contextlib
import json
import os
import signal
import socket
import sys
from types import FrameType

STREAMS = (0, 1, 2)
FORWARDED = (signal.SIGTERM, signal.SIGINT)


def run(address: str, arguments: list[str]) -> None:
    """Have the server run Python with these arguments, and end as that process ends."""
    child: list[int] = []
    early: list[int] = []

    def forward(number: int, frame: FrameType | None) -> None:
        if child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child[0], number)
        else:
            early.append(number)

    for number in FORWARDED:
        signal.signal(number, forward)
    asked = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}  # noqa: PTH109
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        request = json.dumps(asked).encode()
        socket.send_fds(server, [len(request).to_bytes(8, "big")], STREAMS)
        server.sendall(request)
        for stream in STREAMS:
            os.close(stream)
        child.append(int.from_bytes(exactly(server, 8), "big"))
        for received in early:
            forward(received, None)
        status = int.from_bytes(exactly(server, 8), "big")
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


def exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (part := connection.recv(size - len(data))):
            raise EOFError
        data += part
    return data


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2:])
