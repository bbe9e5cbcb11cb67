"""Stores of a simulated team: files that can be backed up, restored and cloned, with own clocks."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from trivet import Trivet
from trivet.common.clock import clock_fixed_at
from trivet.sync.laptop import Laptop, join
from trivet.sync.laptop_state import load
from trivet.sync.messages import Place
from trivet.types import Caller

USERS = ("ana", "bo")
PLAIN: dict[str, Any] = {
    "embedder": "none",
    "changes": "off",
    "usage_counts": False,
    "secrets_keyring": False,
}
RIGHTS = frozenset({"read", "write", "share", "reveal"})


def caller(user: str) -> Caller:
    return Caller(tenant="default", user=user, role="writer", key="k", rights=RIGHTS)  # type: ignore[arg-type]


class Machine:
    """One store. Its clock may be years off; nothing may depend on it."""

    def __init__(self, folder: Path, name: str, template: Path, year: int) -> None:
        self.name = name
        self.year = year
        self.folder = folder / name
        self.folder.mkdir()
        self.backups: list[Path] = []
        shutil.copy(template, self.path)
        self.trivet = self.opened()

    @property
    def path(self) -> Path:
        return self.folder / "memory.db"

    @contextmanager
    def on_its_clock(self) -> Iterator[None]:
        with clock_fixed_at(f"{self.year}-06-01"):
            yield

    def reopen(self) -> None:
        self.trivet.close()
        self.trivet = self.opened()

    def opened(self) -> Trivet:
        """Open by its own clock. After years without contact a laptop hides shared memories."""
        with self.on_its_clock():
            return open_store(self.path)

    def back_up(self) -> None:
        target = self.folder.parent / f"{self.name}.backup{len(self.backups)}"
        copy_store(self.path, target)
        self.backups.append(target)

    def put_back(self, number: int) -> None:
        self.trivet.close()
        for file in self.folder.iterdir():
            file.unlink()
        shutil.copy(self.backups[number], self.path)
        self.trivet = self.opened()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        found = self.trivet.engine.store.feed.database.read().execute(sql).fetchall()
        return [tuple(row) for row in found]

    def bytes(self) -> bytes:
        return b"".join(file.read_bytes() for file in self.folder.iterdir())


class PostgresMachine(Machine):
    """A server's tenant on PostgreSQL. It is never put back, which would take a whole database."""

    def __init__(self, url: str, tenant: str) -> None:
        self.name, self.year = "server", 2026
        self._place: dict[str, Any] = {"path": url, "tenant": tenant}
        self.backups = []
        self.trivet = self.opened()
        for user in USERS:
            self.trivet.engine.store.accounts.add_user(user, "writer")

    def opened(self) -> Trivet:
        return Trivet.open(background=False, **PLAIN, **self._place)

    def back_up(self) -> None:
        """Never."""

    def bytes(self) -> bytes:
        """Return rows: words leave the files only when the server vacuums."""
        tables = (
            "memory",
            "revision",
            "branch",
            "lexical",
            "feed",
            "tombstone",
            "applied",
            "revoked",
            "meta",
        )
        return "\n".join(
            str(row) for table in tables for row in self.rows(f"SELECT * FROM {table}")
        ).encode()


class LaptopMachine(Machine):
    def __init__(self, folder: Path, name: str, user: str, template: Path, year: int) -> None:
        self.user = user
        super().__init__(folder, name, template, year)

    @property
    def laptop(self) -> Laptop:
        return Laptop(self.trivet.engine)

    @property
    def place(self) -> Place:
        state = load(self.trivet.engine.store.feed.database.read())
        assert state is not None, "it joined"
        return state.place

    @property
    def scopes(self) -> tuple[str, ...]:
        return self.place.scopes

    def cloned(self, name: str) -> LaptopMachine:
        copy = self.folder.parent / f"{name}.clone"
        copy_store(self.path, copy)
        return LaptopMachine(self.folder.parent, name, self.user, copy, self.year)


def open_store(path: Path) -> Trivet:
    return Trivet.open(path, background=False, **PLAIN)


def memory_disk() -> Path | None:
    """Use memory: on a disk, histories would spend most of their time waiting."""
    return Path("/dev/shm") if Path("/dev/shm").is_dir() else None


def copy_store(source: Path, target: Path) -> None:
    with sqlite3.connect(source) as one, sqlite3.connect(target) as other:
        one.backup(other)
    one.close()
    other.close()


def make_templates(folder: Path) -> dict[str, Path]:
    """Make a server with users, and a joined store for each, to copy for every history."""
    templates = {}
    for name in ("server", *USERS):
        path = templates[name] = folder / f"template-{name}.db"
        with open_store(path) as trivet:
            if name == "server":
                for user in USERS:
                    trivet.engine.store.accounts.add_user(user, "writer")
            else:
                join(trivet.engine, "http://server", name)
        checkpoint(path)
    return templates


def checkpoint(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


@contextmanager
def seeded(random: Random) -> Iterator[None]:
    """Draw ids and marks from the seed, so a history can be repeated."""
    ticks = iter(range(10**15, 10**16))
    bits = SimpleNamespace(randbits=random.getrandbits)
    clock = SimpleNamespace(time_ns=lambda: next(ticks) * 10**6)
    marks = SimpleNamespace(token_hex=lambda n: f"{random.getrandbits(8 * n):0{2 * n}x}")
    with (
        patch("trivet.common.ids.secrets", bits),
        patch("trivet.common.ids.time", clock),
        patch("trivet.store.relational.tables.sync_feed.secrets", marks),
    ):
        yield
