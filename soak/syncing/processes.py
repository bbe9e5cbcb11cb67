"""Real processes: a server, laptops that write and exchange through a bad line, and kill -9 of all of them.

With `--postgres` the server's store is PostgreSQL, which is killed too. With `--small-disk` the server's store lies on
a disk of 24 MB (root must mount it), which is filled up now and then.

`python -m soak.syncing.processes --kills 200` ends with what must hold: every acknowledged word is on the server or was
purged, every laptop equals what its user may read, doctor is clean.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from soak.syncing.manifest import manifest
from trivet import Trivet, TrivetError
from trivet.sync import verbs

LAPTOPS = (("a1", "ana"), ("a2", "ana"), ("b1", "bo"))
USUAL: dict[str, Any] = {"embedder": "none", "changes": "off", "usage_counts": False, "secrets_keyring": False}
# Of the line between laptops and server: how often a connection breaks, and how much it lets through before.
BREAKS = 0.15
MOST_BYTES = 20_000
SMALL_DISK_MB = 24
# What doctor finds that is no matter of sync, or is meant to be.
UNRELATED = ("sync", "room on disk", "memory of postgresql", "standbys")

WRITER = """
import random, sys, time
from soak.syncing.processes import write_for_ever
write_for_ever(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
"""


def open_store(path: Path | str, **more: Any) -> Trivet:
    return Trivet.open(path, background=False, **USUAL, **more)


def write_for_ever(path: str, user: str, ledger: str, seed: int) -> None:
    """Writes, and notes each word once its write is acknowledged. What the network does is no reason to stop."""
    chance = random.Random(seed)
    other = "bo" if user == "ana" else "ana"
    with Path(ledger).open("a", buffering=1) as noted, open_store(Path(path)) as trivet:
        while True:
            word = f"word{seed}n{chance.getrandbits(40):x}"
            memories = trivet.list(limit=100).memories
            try:
                if not memories or chance.random() < 0.3:
                    id = trivet.remember(f"{word} was written.").id
                    if chance.random() < 0.5:
                        trivet.share(id=id, user=other, permission="write")
                else:
                    id = chance.choice(memories).id
                    trivet.edit(id, content=f"{word} was edited.")
                noted.write(f"{word}\n")
            except TrivetError:
                pass  # not acknowledged, so not noted: nobody looks for it later
            if chance.random() < 0.3:
                try:
                    verbs.synced_now(trivet.engine)
                except TrivetError:
                    time.sleep(0.02)


class BadLine:
    """A proxy that cuts connections in the middle of what they say."""

    def __init__(self, target: int, seed: int) -> None:
        self._target = target
        self._random = random.Random(seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cut = 0
        self.good = False
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            client, _ = self._listener.accept()
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            client.close()
            return
        breaks = not self.good and self._random.random() < BREAKS
        left = [self._random.randrange(MOST_BYTES) if breaks else -1]
        self.cut += breaks
        ways = [threading.Thread(target=self._pipe, args=pair, daemon=True) for pair in (
            (client, server, left), (server, client, left))]  # fmt: skip
        for way in ways:
            way.start()

    def _pipe(self, source: socket.socket, target: socket.socket, left: list[int]) -> None:
        try:
            while data := source.recv(4096):
                if left[0] >= 0:
                    left[0] -= len(data)
                    if left[0] <= 0:
                        break
                target.sendall(data)
        except OSError:
            pass  # the line broke, which is what this one is for; both ends are told below
        finally:
            for one in (source, target):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)


class SmallDisk:
    """A disk of its own that can be filled to the last byte."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK_MB}m", "tmpfs", str(folder)], check=True)

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


class Team:
    def __init__(self, folder: Path, seed: int, disk: SmallDisk | None = None, postgres: Any = None) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.seed = seed
        self.disk, self.postgres = disk, postgres
        self.store = postgres.database() if postgres else str((disk.folder if disk else folder) / "server.db")
        with open_store(self.store) as server:
            for user in ("ana", "bo"):
                server.engine.store.accounts.add_user(user, "writer")
            from trivet.memory.accounts import make_key

            keys = {user: make_key(server.engine.store, "default", user).text for user in ("ana", "bo")}
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.line = BadLine(self.port, seed)
        self.server = self.start_server()
        for name, user in LAPTOPS:
            with open_store(self.path(name), key=keys[user]) as laptop:
                until(lambda laptop=laptop: verbs.join(laptop.engine, f"http://127.0.0.1:{self.line.port}"))
        for name, _ in LAPTOPS:
            (folder / f"{name}.words").touch()
        self.writers = {name: self.start_writer(name, user) for name, user in LAPTOPS}

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.db"

    def start_server(self) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "trivet.cli", "--path", self.store, "serve"]
        log = (self.folder / "server.log").open("ab")
        environment = {**os.environ, "TRIVET_EMBEDDER": "none", "TRIVET_CHANGES": "off",
                       "TRIVET_SERVER_REQUESTS_A_MINUTE": "1000000", "TRIVET_SERVER_BURST": "1000000"}  # fmt: skip
        return subprocess.Popen([*words, "--port", str(self.port)], env=environment, stdout=log, stderr=log)

    def start_writer(self, name: str, user: str) -> subprocess.Popen[bytes]:
        self.seed += 1
        words = [sys.executable, "-c", WRITER, str(self.path(name)), user, str(self.folder / f"{name}.words")]
        log = (self.folder / f"{name}.log").open("ab")
        return subprocess.Popen([*words, str(self.seed)], stdout=log, stderr=log)

    def kill_one(self) -> str:
        others = [("server", "")] + [("disk", "")] * bool(self.disk) + [("database", "")] * bool(self.postgres)
        name, user = self.random.choice((*LAPTOPS, *others))
        if name == "disk":
            assert self.disk is not None
            self.disk.full_for(self.random.uniform(0.5, 3.0))
            return name
        if name == "database":
            self.postgres.restart()  # without a word, as in a crash
            return name
        process = self.server if name == "server" else self.writers[name]
        process.send_signal(signal.SIGKILL)
        process.wait()
        if name == "server":
            self.server = self.start_server()
        else:
            self.writers[name] = self.start_writer(name, user)
        return name

    def come_to_rest(self) -> None:
        for process in self.writers.values():
            process.kill()
            process.wait()
        self.line.good = True
        for _ in range(4):
            for name, _ in LAPTOPS:
                with open_store(self.path(name)) as laptop:
                    until(lambda laptop=laptop: verbs.synced_now(laptop.engine))

    def check(self) -> dict[str, Any]:
        words = [word for name, _ in LAPTOPS for word in (self.folder / f"{name}.words").read_text().split()]
        with open_store(self.store) as server:
            rows = server.engine.store.feed.database.read().execute(
                "SELECT snapshot FROM revision UNION ALL SELECT snapshot FROM branch"
            )
            served = "\n".join(row[0] for row in rows)
            trouble = [f.check for f in server.doctor() if not f.ok and f.check not in UNRELATED]
        parked, level = "", []
        for name, _ in LAPTOPS:
            with open_store(self.path(name)) as laptop:
                parked += "\n".join(str(one.said) for one in verbs.refused(laptop.engine))
                level.append(verbs.verify(laptop.engine).level)
                trouble += [f.check for f in laptop.doctor() if not f.ok and f.check not in UNRELATED]
        log = (self.folder / "server.log").read_text()
        pushes = log.count('"route":"/v1/sync/push"')
        lost = [word for word in words if word not in served and word not in parked]
        return {
            "words": len(words),
            "lost": lost,
            "level": level,
            "doctor": trouble,
            "connections_cut": self.line.cut,
            "pushes": pushes,
            "refused_for_want_of_room": log.count('"status":507') + log.count('"status":503'),
        }

    def end(self) -> None:
        self.server.kill()
        self.server.wait()


def until(act: Any, seconds: float = 60.0) -> Any:
    limit = time.monotonic() + seconds
    while True:
        try:
            return act()
        except TrivetError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.1)


def _postgres() -> Any:
    from support.postgres_server import PostgresServer

    return PostgresServer()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak.syncing.processes", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pause", type=float, default=3.0, help="the longest time between two kills, in seconds")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--small-disk", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        os.environ["TRIVET_CONFIG"] = f"{folder}/settings/trivet.toml"
        disk = SmallDisk(Path(folder) / "disk") if given.small_disk else None
        postgres = _postgres() if given.postgres else None
        team = Team(Path(folder), given.seed, disk, postgres)
        killed: dict[str, int] = {}
        try:
            for _ in range(given.kills):
                time.sleep(team.random.uniform(1.0, given.pause))  # a Python takes a second to begin
                name = team.kill_one()
                killed[name] = killed.get(name, 0) + 1
            team.come_to_rest()
            found = team.check()
        finally:
            for process in (*team.writers.values(), team.server):
                process.kill()
                process.wait()
            if disk:
                disk.remove()
            if postgres:
                postgres.stop()
                postgres.remove()
    held = not found["lost"] and all(found["level"]) and not found["doctor"]
    result = {**manifest("soak.syncing.processes"), "kills": killed, "held": held, **found}
    print(json.dumps(result))
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
