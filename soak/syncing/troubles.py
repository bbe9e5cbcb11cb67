"""Faults around real processes: a line that breaks, and a disk that fills up."""

from __future__ import annotations

import random
import socket
import subprocess
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

# Chance that a connection breaks, and how much passes before.
BREAKS = 0.15
MOST_BYTES = 20_000
SMALL_DISK_MB = 24


class BadLine:
    """A proxy that cuts connections in the middle of a message."""

    def __init__(self, target: int, seed: int) -> None:
        self._target = target
        self._random = random.Random(seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        # Connections cut on purpose, not reached, and broken by an end that died.
        self.counts: Counter[str] = Counter(cut=0, unreached=0, broken=0)
        self._counting = threading.Lock()
        self.good = False
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            client, _ = self._listener.accept()
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self._target))
        except OSError:  # The server has been killed.
            self._count("unreached")
            client.close()
            return
        breaks = not self.good and self._random.random() < BREAKS
        left = [self._random.randrange(MOST_BYTES) if breaks else -1]
        if breaks:
            self._count("cut")
        ways = [threading.Thread(target=self._pipe, args=pair, daemon=True) for pair in (
            (client, server, left), (server, client, left))]  # fmt: skip
        for way in ways:
            way.start()

    def _count(self, event: str) -> None:
        with self._counting:
            self.counts[event] += 1

    def _pipe(self, source: socket.socket, target: socket.socket, left: list[int]) -> None:
        try:
            while data := source.recv(4096):
                if left[0] >= 0:
                    left[0] -= len(data)
                    if left[0] <= 0:
                        break
                target.sendall(data)
        except OSError:
            self._count("broken")
        finally:
            for one in (source, target):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)


class SmallDisk:
    """A separate disk that can be filled to the last byte."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK_MB}m", "tmpfs", str(folder)],
            check=True,
        )

    def full_for(self, seconds: float) -> None:
        ballast = self.folder / "ballast"
        try:
            with ballast.open("wb", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(b"\0" * 4096)
            time.sleep(seconds)
        finally:
            ballast.unlink()

    def remove(self) -> None:
        subprocess.run(["umount", "-l", str(self.folder)], check=True)
