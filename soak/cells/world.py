"""Four PostgreSQL clusters, four servers on loopback, tenants, and their writers."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from support.postgres_server import PostgresServer
from trivet import Trivet, TrivetError
from trivet.errors import StoreError
from trivet.memory.admin.accounts import make_key
from trivet.settings import Settings
from trivet.store.postgres import Server
from trivet.store.servers import TenantState
from trivet.sync import verbs

CELLS = 4
MOVING = ("birch", "cedar")
STAYING = ("alder", "oak")
USUAL: dict[str, Any] = {
    "embedder": "none",
    "changes": "off",
    "usage_counts": False,
    "secrets_keyring": False,
}
# Initial memories of a tenant; one tenant has enough to need several copy batches.
FIRST = {"birch": 300, "cedar": 2_100}
PATIENCE_SECONDS = 300.0
SYLLABLES = "ka lo mi ne ru sa to vi bar den fil gon hem jor kal lum".split()


T = TypeVar("T")


class Noted(msgspec.Struct):
    done: dict[str, set[str]]  # Acknowledged words by memory.
    seconds: list[float]
    refused: int = 0
    reasons: dict[str, int] = msgspec.field(default_factory=dict)


class World:
    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.clusters = [PostgresServer() for _ in range(CELLS)]
        self.urls = [one.database() for one in self.clusters]
        self.ports = [_free_port() for _ in range(CELLS)]
        self.home = {name: place % CELLS for place, name in enumerate((*MOVING, *STAYING))}
        self.keys = {name: self._make_tenant(name) for name in self.home}
        self.servers = [self._start_server(place) for place in range(CELLS)]
        self.noted = {name: Noted({}, []) for name in self.home}
        self.ended = threading.Event()
        self.writers = [threading.Thread(target=self._write, args=(name, seed + place), daemon=True)
                        for place, name in enumerate(self.home)]  # fmt: skip
        self.laptop = self._join_laptop(MOVING[0])
        for writer in self.writers:
            writer.start()

    def settings(self, place: int, **more: Any) -> Settings:
        return Settings(
            path=self.urls[place], directory=self.urls[0], cells=tuple(self.urls), **USUAL, **more
        )

    def environment(self) -> dict[str, str]:
        given = {"DIRECTORY": self.urls[0], "CELLS": ",".join(self.urls), "EMBEDDER": "none", "CHANGES": "off",
                 "USAGE_COUNTS": "false", "SECRETS_KEYRING": "false", "BUSY_TIME_LIMIT_MS": "3000",
                 "SERVER_REQUESTS_A_MINUTE": "1000000", "SERVER_BURST": "1000000"}  # fmt: skip
        return {**os.environ, **{f"TRIVET_{name}": value for name, value in given.items()}}

    def _make_tenant(self, name: str) -> str:
        with Trivet.open(
            settings=self.settings(self.home[name], tenant=name, background=False)
        ) as trivet:
            trivet.engine.store.accounts.add_user("ana", "admin")
            trivet.remember_many(
                [{"content": note(random.Random(n))} for n in range(FIRST.get(name, 1))]
            )
            return make_key(trivet.engine.store, name, "ana").text

    def _start_server(self, place: int) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "trivet.cli", "--path", self.urls[place], "serve", "--port"]
        log = (self.folder / f"server{place}.log").open("ab")
        command = [*words, str(self.ports[place])]
        return subprocess.Popen(command, env=self.environment(), stdout=log, stderr=log)

    def _join_laptop(self, tenant: str) -> Path:
        path = self.folder / "laptop.db"
        with self.open_laptop(key=self.keys[tenant]) as laptop:
            patiently(lambda: verbs.join(laptop.engine, f"http://127.0.0.1:{self.ports[0]}"))
        return path

    def open_laptop(self, **more: Any) -> Trivet:
        return Trivet.open(self.folder / "laptop.db", background=False, **USUAL, **more)

    def _write(self, tenant: str, seed: int) -> None:
        """Write through a random server and note only acknowledged writes."""
        chance, noted = random.Random(seed), self.noted[tenant]
        own: list[str] = []
        while not self.ended.is_set():
            word = f"w{chance.getrandbits(48):x}"
            begun = time.monotonic()
            try:
                place = chance.randrange(CELLS)
                with Trivet.open(
                    f"http://127.0.0.1:{self.ports[place]}", key=self.keys[tenant]
                ) as client:
                    if not own or chance.random() < 0.5:
                        id = client.remember(f"{word} was said.").id
                        own.append(id)
                    else:
                        id = chance.choice(own)
                        client.edit(id, content=f"{word} was edited.")
                noted.done.setdefault(id, set()).add(word)
                noted.seconds.append(time.monotonic() - begun)
            except TrivetError as error:
                noted.refused += 1
                told = str(error)[:120]
                noted.reasons[told] = noted.reasons.get(told, 0) + 1
            time.sleep(0.02)

    def mover(self, tenant: str, target: int, *more: str) -> subprocess.Popen[str]:
        words = [
            sys.executable,
            "-m",
            "trivet.cli",
            "--path",
            self.urls[self.home[tenant]],
            "tenant",
            "move",
            tenant,
        ]
        command = [*words, "--to", self.urls[target], *more]
        return subprocess.Popen(command, env=self.environment(), text=True, stderr=subprocess.PIPE,
                                stdout=subprocess.DEVNULL)  # fmt: skip

    def kill_server(self, place: int) -> None:
        self.servers[place].send_signal(signal.SIGKILL)
        self.servers[place].wait()
        self.servers[place] = self._start_server(place)

    def kill_cluster(self, place: int) -> None:
        cluster = self.clusters[place]
        os.kill(
            int((cluster.folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL
        )
        patiently(cluster.start, AssertionError)

    def standings(self, tenant: str) -> list[TenantState | None]:
        found = []
        for url in self.urls:
            server = Server(url)
            found.append(patiently(partial(server.standing, tenant)))
            server.close()
        return found

    def close(self) -> None:
        self.ended.set()
        for writer in self.writers:
            writer.join()
        for server in self.servers:
            server.kill()
            server.wait()
        for cluster in self.clusters:
            cluster.remove()


def patiently(act: Callable[[], T], *others: type[Exception]) -> T:
    last = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return act()
        except Exception as error:
            if not isinstance(error, (StoreError, *others)) or time.monotonic() > last:
                raise
            time.sleep(0.1)


def note(chance: random.Random) -> str:
    """Return a text unlike the others: similar ones would all be compared."""
    return " ".join("".join(chance.choices(SYLLABLES, k=3)) for _ in range(12)) + "."


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
