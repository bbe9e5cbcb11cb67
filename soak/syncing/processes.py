"""Real processes: a server and laptops that write and sync over a bad line, with kill -9 of all.

`--postgres` puts the server's store on PostgreSQL, which is killed too. `--small-disk` puts a store
on a 24 MB disk (root must mount it) that fills up now and then. `--older` runs the server or the
laptops at an older commit and upgrades them at the end.

Nothing is killed before it has done something: a laptop noted a word, the server answered a push.
If that takes over a minute, all processes dump their stacks and the run fails.

`python -m soak.syncing.processes --kills 200` checks at the end that every acknowledged word is on
the server or purged, every laptop equals what its user may read, and doctor is clean.
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
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from soak.older_code import of_commit
from soak.syncing.manifest import manifest
from soak.syncing.troubles import BadLine, SmallDisk
from soak.syncing.writer import open_store
from trivet import TrivetError
from trivet.sync import verbs

LAPTOPS = (("a1", "ana"), ("a2", "ana"), ("b1", "bo"))
# Findings of doctor that do not concern sync, or are intended.
UNRELATED = ("sync", "room on disk", "memory of postgresql", "standbys")
PUSHED = '"route":"/v1/sync/push"'
# First commit whose laptops follow a server; its sync has no feedback, scopes or vectors.
OLDER = "55a96fa"
HANGS_SECONDS = 60.0

# On SIGUSR1 a process writes its stacks into its log.
_TELLS = "import faulthandler, signal; faulthandler.register(signal.SIGUSR1, all_threads=True)\n"
WRITER = (
    _TELLS
    + """
import sys
from soak.syncing.writer import write_for_ever
write_for_ever(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
"""
)
SERVER = (
    _TELLS
    + """
import sys
from trivet.cli import main
sys.exit(main())
"""
)
# Run with the server's code: older code cannot open a newer store.
MAKES_USERS = """
import json, sys
from soak.syncing.writer import open_store
from trivet.memory.admin.accounts import make_key
with open_store(sys.argv[1]) as server:
    for user in ("ana", "bo"):
        server.engine.store.accounts.add_user(user, "writer")
    print(json.dumps({user: make_key(server.engine.store, "default", user).text for user in ("ana", "bo")}))
"""
JOINS = """
import sys
from soak.syncing.processes import until, verbs
from soak.syncing.writer import open_store
with open_store(sys.argv[1], key=sys.argv[2]) as laptop:
    until(lambda: verbs.join(laptop.engine, sys.argv[3]))
"""


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """A team's environment. A package of older code is a folder to import it from."""

    disk: SmallDisk | None = None
    full: str = ""  # Whose store is on that disk.
    postgres: Any = None
    server_code: Path | None = None
    laptop_code: Path | None = None


class Team:
    def __init__(self, folder: Path, seed: int, around: Around) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.seed = seed
        self.around = around
        self.store = around.postgres.database() if around.postgres else str(self.place("server"))
        keys = json.loads(self.run(MAKES_USERS, around.server_code, self.store))
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.line = BadLine(self.port, seed)
        self.waited = 0  # Operations an older server did not know.
        self.began: dict[str, int] = {}  # How much each had done when it was started.
        for name, _ in LAPTOPS:
            (folder / f"{name}.words").touch()
            (folder / f"{name}.errors").touch()
        self.server = self.start_server()
        for name, user in LAPTOPS:
            address = f"http://127.0.0.1:{self.line.port}"
            self.run(JOINS, around.laptop_code, str(self.place(name)), keys[user], address)
        self.writers = {name: self.start_writer(name, user) for name, user in LAPTOPS}

    def place(self, name: str) -> Path:
        on_disk = self.around.disk is not None and name == self.around.full
        return (
            self.around.disk.folder if on_disk and self.around.disk else self.folder
        ) / f"{name}.db"

    def run(self, code: str, package: Path | None, *words: str) -> str:
        log = (self.folder / "made.log").open("ab")
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(
            command, env=running(package), stdout=subprocess.PIPE, stderr=log, check=True
        ).stdout.decode()

    def start_server(self) -> subprocess.Popen[bytes]:
        log = (self.folder / "server.log").open("ab")
        self.began["server"] = self.done("server")
        environment = {**running(self.around.server_code), "TRIVET_EMBEDDER": "none", "TRIVET_CHANGES": "off",
                       "TRIVET_SERVER_REQUESTS_A_MINUTE": "1000000", "TRIVET_SERVER_BURST": "1000000"}  # fmt: skip
        words = [
            sys.executable,
            "-c",
            SERVER,
            "--path",
            self.store,
            "serve",
            "--port",
            str(self.port),
        ]
        return subprocess.Popen(words, env=environment, stdout=log, stderr=log)

    def start_writer(self, name: str, user: str) -> subprocess.Popen[bytes]:
        self.seed += 1
        self.began[name] = self.done(name)
        words = [
            sys.executable,
            "-c",
            WRITER,
            str(self.place(name)),
            user,
            str(self.folder / f"{name}.words"),
        ]
        log = (self.folder / f"{name}.log").open("ab")
        return subprocess.Popen(
            [*words, str(self.seed)], env=running(self.around.laptop_code), stdout=log, stderr=log
        )

    def done(self, name: str) -> int:
        """Return how much a laptop has written or the server answered."""
        if name == "server":
            log = self.folder / "server.log"
            return log.read_text().count(PUSHED) if log.exists() else 0
        return (self.folder / f"{name}.words").stat().st_size

    def wait_for_work(self, name: str) -> None:
        limit = time.monotonic() + HANGS_SECONDS
        while self.done(name) == self.began[name]:
            if time.monotonic() > limit:
                raise AssertionError(f"{name} does nothing.\n{self.stand()}")
            time.sleep(0.02)

    def stand(self) -> str:
        for process in (self.server, *self.writers.values()):
            if process.poll() is None:
                process.send_signal(signal.SIGUSR1)
        time.sleep(1)
        logs = {
            name: (self.folder / f"{name}.log").read_text() for name in ("server", *self.writers)
        }
        return "\n".join(f"---- {name}\n{log[-4000:]}" for name, log in logs.items())

    def kill_one(self) -> str:
        disk, postgres = self.around.disk, self.around.postgres
        others = (
            [("server", "")] + [("disk", "")] * bool(disk) + [("database", "")] * bool(postgres)
        )
        name, user = self.random.choice((*LAPTOPS, *others))
        self.wait_for_work(name if name in self.began else "server")
        if name == "disk":
            assert disk is not None
            disk.full_for(self.random.uniform(0.5, 3.0))
            return name
        if name == "database":
            postgres.restart()  # Without warning, as in a crash.
            self.began["server"] = self.done("server")
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
        """Stop writers, upgrade older code, and let all exchange on a good line."""
        for process in self.writers.values():
            process.kill()
            process.wait()
        self.line.good = True
        if self.around.server_code:
            self.exchange(rounds=2)
            self.waited = sum(self.outbox(name) for name, _ in LAPTOPS)
            self.end()
            self.around = msgspec.structs.replace(self.around, server_code=None)
            self.server = self.start_server()
        self.exchange(rounds=4)

    def outbox(self, name: str) -> int:
        with open_store(self.place(name)) as laptop:
            return verbs.status(laptop.engine, ask=False).outbox

    def exchange(self, rounds: int) -> None:
        for _ in range(rounds):
            for name, _ in LAPTOPS:
                with open_store(self.place(name)) as laptop:
                    until(lambda laptop=laptop: verbs.sync_now(laptop.engine))

    def check(self) -> dict[str, Any]:
        words = [
            word
            for name, _ in LAPTOPS
            for word in (self.folder / f"{name}.words").read_text().split()
        ]
        with open_store(self.store) as server:
            rows = server.engine.store.feed.database.read().execute(
                "SELECT snapshot FROM revision UNION ALL SELECT snapshot FROM branch"
            )
            served = "\n".join(row[0] for row in rows)
            trouble = [f.check for f in server.doctor() if not f.ok and f.check not in UNRELATED]
        parked, level = "", []
        for name, _ in LAPTOPS:
            with open_store(self.place(name)) as laptop:
                parked += "\n".join(str(one.said) for one in laptop.sync_refused(reveal=True))
                level.append(verbs.verify(laptop.engine).level)
                trouble += [
                    f.check for f in laptop.doctor() if not f.ok and f.check not in UNRELATED
                ]
        log = (self.folder / "server.log").read_text()
        lost = [word for word in words if word not in served and word not in parked]
        return {
            "words": len(words),
            "lost": lost,
            "level": level,
            "doctor": trouble,
            "failed": self.failed(),
            **{f"connections_{event}": count for event, count in self.line.counts.items()},
            "pushes": log.count(PUSHED),
            "waited_for_an_upgrade": self.waited,
            "refused_for_want_of_room": log.count('"status":507') + log.count('"status":503'),
        }

    def failed(self) -> dict[str, int]:
        """Count the laptops' failed writes and exchanges by error."""
        noted = (self.folder / f"{name}.errors" for name, _ in LAPTOPS)
        return dict(Counter(line for file in noted for line in file.read_text().splitlines()))

    def end(self) -> None:
        for process in (*self.writers.values(), self.server):
            process.kill()
            process.wait()


def running(package: Path | None) -> dict[str, str]:
    """Return the environment of a process that runs this code or older code."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, [*([package] if package else []), *sys.path])),
    }


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
    parser.add_argument("--minutes", type=float, default=60.0, help="kill nothing after so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--pause", type=float, default=1.0, help="the longest time between two kills, in seconds"
    )
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument(
        "--small-disk",
        choices=("server", "laptop"),
        help="owner of the disk that fills up now and then",
    )
    parser.add_argument(
        "--older", choices=("server", "laptops"), help="side that runs older code until the end"
    )
    parser.add_argument("--commit", default=OLDER, help="of the older code")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as made:
        os.environ["TRIVET_CONFIG"] = f"{made}/settings/trivet.toml"
        around = _around(Path(made), given)
        try:
            killed, found = _played(Path(made), given, around)
        finally:
            if around.disk:
                around.disk.remove()
            if around.postgres:
                around.postgres.stop()
                around.postgres.remove()
    held = not found["lost"] and all(found["level"]) and not found["doctor"]
    result = {**manifest("soak.syncing.processes"), "kills": killed, "held": held, **found}
    print(json.dumps(result))
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if held else 1


def _around(folder: Path, given: Any) -> Around:
    older = of_commit(given.commit, folder / "older") if given.older else None
    return Around(
        disk=SmallDisk(folder / "disk") if given.small_disk else None,
        full={"server": "server", "laptop": LAPTOPS[0][0], None: ""}[given.small_disk],
        postgres=_postgres() if given.postgres else None,
        server_code=older if given.older == "server" else None,
        laptop_code=older if given.older == "laptops" else None,
    )


def _played(folder: Path, given: Any, around: Around) -> tuple[dict[str, int], dict[str, Any]]:
    team = Team(folder, given.seed, around)
    killed: dict[str, int] = {}
    until_then = time.monotonic() + 60 * given.minutes
    try:
        while sum(killed.values()) < given.kills and time.monotonic() < until_then:
            time.sleep(team.random.uniform(0.0, given.pause))
            name = team.kill_one()
            killed[name] = killed.get(name, 0) + 1
        team.come_to_rest()
        return killed, team.check()
    finally:
        team.end()


if __name__ == "__main__":
    sys.exit(main())
