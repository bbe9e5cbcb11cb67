"""Python processes that start in milliseconds, forked from one that has the libraries loaded.

Importing the MCP library takes a process over a second. `warm` gives a command that acts like
`python` with the same arguments: a small client passes its arguments, environment, folder and
streams on, forwards signals, and ends like the forked process, which dies with it. Tests of imports
and of the end of a process start Python itself.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from support import warm_client
from support.warm_client import FORWARDED, STREAMS, exactly

LOADED = (
    "trivet.cli.app",
    "trivet.memory.recall",
    "trivet.memory.admin.importer",
    "trivet.serve.mcp.server",
    "trivet.serve.mcp.reference_server",
    "trivet.serve.resident.client",
)


def warm(*arguments: str) -> list[str]:
    """Return a command that runs Python with these arguments, which begin with -c or -m."""
    return [sys.executable, "-S", "-E", warm_client.__file__, _server(), *arguments]


@cache
def _server() -> str:
    address = str(Path(tempfile.mkdtemp(prefix="trivet-warm-")) / "socket")
    process = subprocess.Popen(
        [sys.executable, "-m", "support.warm_python", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    )
    atexit.register(process.communicate)  # the server ends with its input
    assert process.stdout is not None
    assert process.stdout.read(1) == b"."
    return address


def serve(address: str) -> None:
    """Fork a process for each connection, and kill the processes of closed connections."""
    for name in LOADED:
        import_module(name)
    wakes, waking = socket.socketpair()
    waking.setblocking(False)
    signal.set_wakeup_fd(waking.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for pytest
    running: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as listening, selectors.DefaultSelector() as chosen:
        listening.bind(address)
        listening.listen()
        for source in (listening, wakes, sys.stdin):
            chosen.register(source, selectors.EVENT_READ)
        os.write(1, b".")
        while True:
            for key, _ in chosen.select():
                if key.fileobj is sys.stdin:
                    _end(running, Path(address).parent)
                elif key.fileobj is wakes:
                    wakes.recv(1000)
                    _reap(running, chosen)
                elif key.fileobj is listening:
                    client, _ = listening.accept()
                    number = _fork(client, [listening, wakes, waking, *running.values()])
                    running[number] = client
                    client.sendall(number.to_bytes(8, "big"))
                    chosen.register(client, selectors.EVENT_READ, number)
                elif key.data in running:
                    os.kill(key.data, signal.SIGKILL)
                    chosen.unregister(key.fileobj)


def _end(running: Iterable[int], folder: Path) -> NoReturn:
    for number in running:
        os.kill(number, signal.SIGKILL)
    shutil.rmtree(folder)
    os._exit(0)


def _reap(running: dict[int, socket.socket], chosen: selectors.BaseSelector) -> None:
    while running:
        number, status = os.waitpid(-1, os.WNOHANG)
        if number == 0:
            return
        client = running.pop(number)
        with contextlib.suppress(KeyError):
            chosen.unregister(client)
        with contextlib.suppress(OSError):
            client.sendall(status.to_bytes(8, "big"))
        client.close()


def _fork(client: socket.socket, of_server: list[socket.socket]) -> int:
    header, streams, _, _ = socket.recv_fds(client, 8, len(STREAMS))
    asked = json.loads(exactly(client, int.from_bytes(header, "big")))
    number = os.fork()
    if number == 0:
        signal.set_wakeup_fd(-1)
        for opened in (client, *of_server):
            opened.close()
        for stream, passed in zip(STREAMS, streams, strict=True):
            os.dup2(passed, stream)
        for passed in streams:
            os.close(passed)
        _become(asked)
    for passed in streams:
        os.close(passed)
    return number


def _become(asked: dict[str, Any]) -> None:
    """Run the requested code in this process, as Python would, and exit."""
    for number in (*FORWARDED, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.path[0] = asked["folder"]
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    status = 0
    try:
        _execute(asked["arguments"])
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _execute(arguments: list[str]) -> None:
    how, what, *rest = arguments
    main = sys.modules["__main__"] = ModuleType("__main__")
    if how == "-m":
        from runpy import run_module

        sys.argv = [what, *rest]
        run_module(what, run_name="__main__", alter_sys=True)
    else:
        assert how == "-c", how
        sys.argv = ["-c", *rest]
        exec(compile(what, "<string>", "exec"), main.__dict__)


if __name__ == "__main__":
    serve(sys.argv[1])
