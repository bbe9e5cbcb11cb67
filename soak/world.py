"""A store under attack: files on a small disk or a database, with an embedder and keys."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from subprocess import Popen
from typing import Any

import msgspec

from acceptance.http.process import Process, process
from soak.crew import Crew, crew
from soak.ledger import Ledger
from soak.lying_embedder import LyingEmbedder
from soak.writing import Opening
from support.postgres_server import PostgresServer
from support.resident_home import start_resident, stop_resident
from trivet import Trivet
from trivet.memory.admin.accounts import RIGHTS, make_key
from trivet.types import LOCAL

# Several times what a few dozen rounds write.
DISK = "256m"
# Writers wait for each other without limit: a stopped one is released in the end.
BUSY_MS = 60_000
FOLDERS = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR")
# Share of stores whose changes a model compares: it takes most of the time in which writers could
# be killed. The others compare by words.
READ_BY_THE_MODEL = 1 / 8
NO_LIMITS = {"TRIVET_SERVER_REQUESTS_A_MINUTE": "1000000", "TRIVET_SERVER_BURST": "1000000"}


class Skipped(Exception):
    """This machine lacks what an injector needs; the message says what."""


@dataclass
class World:
    kind: str
    folder: Path
    address: str
    embedder: LyingEmbedder
    random: Random
    writers: int
    # Duration of scenarios with a fixed length.
    seconds: float
    changes: str = "words"
    small_disk: bool = False
    postgres: PostgresServer | None = None
    ledger: Ledger = field(default_factory=Ledger)
    _keys: dict[str, str] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """Some wheels of pgvector do not run on every processor; then words are tested alone."""
        able = self.postgres is None or self.postgres.compares_vectors
        return self.embedder.spec() if able else "none"

    def opening(self, background: bool = True) -> Opening:
        settings: dict[str, Any] = {
            "embedder": self.model,
            "background": background,
            "busy_time_limit_ms": BUSY_MS,
        }
        return Opening(self.address, {**settings, "changes": self.changes}, self.environment)

    @property
    def environment(self) -> dict[str, str]:
        """Set the environment for writers forked from a process that began with another store's."""
        return {name: os.environ[name] for name in FOLDERS}

    @property
    def models(self) -> dict[str, str]:
        return {"TRIVET_EMBEDDER": self.model, "TRIVET_CHANGES": self.changes}

    def open(self, embedder: str | None = None) -> Trivet:
        return Trivet.open(
            self.address,
            embedder=embedder or self.model,
            background=False,
            busy_time_limit_ms=BUSY_MS,
        )

    @contextmanager
    def crew(self) -> Iterator[Crew]:
        with crew(self.ledger) as hired:
            yield hired

    @contextmanager
    def server(self, port: int = 0) -> Iterator[Process]:
        settings = {"TRIVET_BUSY_TIME_LIMIT_MS": str(BUSY_MS), **self.models, **NO_LIMITS}
        arguments = ("--path", self.address, *(("--port", str(port)) if port else ()))
        with process(*arguments, log=str(self.folder / "server.log"), **settings) as running:
            yield running

    @contextmanager
    def resident(self) -> Iterator[Popen[bytes]]:
        """Run the store's resident process; it is killed at the end."""
        settings = {"TRIVET_PATH": self.address, "TRIVET_RESIDENT": "use", **self.models}
        running = start_resident({**os.environ, **settings})
        try:
            yield running
        finally:
            stop_resident(running)

    def by_resident(self) -> Opening:
        environment = {**self.environment, "TRIVET_RESIDENT": "use"}
        return msgspec.structs.replace(self.opening(), resident=True, environment=environment)

    def by_server(self, server: Process) -> Opening:
        return Opening(server.address, {"key": self.key(LOCAL)}, self.environment)

    def key(self, user: str) -> str:
        if user not in self._keys:
            with self.open("none") as memory:
                store = memory.engine.store
                if not store.accounts.has(user):
                    store.accounts.add_user(user, "admin")
                self._keys[user] = make_key(store, "default", user, RIGHTS["admin"]).text
        return self._keys[user]

    def remount(self, size: str) -> bool:
        """Resize the disk; return False if its content is larger."""
        mount = ["mount", "-o", f"remount,size={size}", str(self.folder)]
        return subprocess.run(mount, capture_output=True).returncode == 0


@contextmanager
def world(kind: str, random: Random, writers: int, seconds: float) -> Iterator[World]:
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="trivet-soak-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        small = kind == "sqlite" and _mounted(folder, stack)
        _own_home(folder)
        embedder = LyingEmbedder()
        stack.callback(embedder.stop)
        database = None
        address = str(folder / "memory.db")
        if kind == "postgres":
            database = PostgresServer()
            stack.callback(database.remove)
            address = database.database()
        changes = "read" if random.random() < READ_BY_THE_MODEL else "words"
        yield World(
            kind, folder, address, embedder, random, writers, seconds, changes, small, database
        )


def _mounted(folder: Path, stack: ExitStack) -> bool:
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0700", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        return False
    stack.callback(subprocess.run, ["umount", "--lazy", str(folder)], check=True)
    return True


def _own_home(folder: Path) -> None:
    """Isolate this process and its children from the user's own files."""
    for name in [name for name in os.environ if name.startswith("TRIVET_")]:
        del os.environ[name]
    os.environ["TRIVET_SECRETS_KEYRING"] = "false"  # Leave the user's keyring alone.
    for name in FOLDERS:
        os.environ[name] = str(folder / name.lower())
    (folder / "xdg_runtime_dir").mkdir(mode=0o700)
