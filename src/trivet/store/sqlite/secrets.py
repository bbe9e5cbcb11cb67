"""Sealed secrets and the chained record of acts on them."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence

import msgspec

from trivet.clock import now
from trivet.store.base import Sealed
from trivet.store.sqlite.database import Database
from trivet.store.sqlite.queries import queries
from trivet.types import AuditEntry


class SqliteSecrets:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("secrets")

    def of(self, id: str) -> tuple[Sealed, ...]:
        with self._database.errors():
            rows = self._database.read().execute(self._sql["of"], {"id": id}).fetchall()
        return tuple(Sealed(**dict(row)) for row in rows)

    def not_under(self, key: str, limit: int) -> tuple[tuple[str, Sealed], ...]:
        """Some of the secrets that another key sealed, each with its memory's id."""
        with self._database.errors():
            rows = self._database.read().execute(self._sql["not_under"], {"key": key, "limit": limit}).fetchall()
        found = (dict(row) for row in rows)
        return tuple((row.pop("id"), Sealed(**row)) for row in found)

    def reseal(self, done: Sequence[tuple[str, Sealed]]) -> None:
        with self._database.write() as connection:
            for id, sealed in done:
                connection.execute(self._sql["reseal"], {"id": id, **msgspec.structs.asdict(sealed)})

    def note(self, act: str, memory: str | None, detail: str) -> None:
        entry = AuditEntry(at=now(), act=act, memory=memory, detail=detail)
        with self._database.write() as connection:
            last = connection.execute(self._sql["last_hash"]).fetchone()
            hash = chained(last["hash"] if last else b"", entry)
            connection.execute(self._sql["note"], {**msgspec.structs.asdict(entry), "hash": hash})

    def noted(self, limit: int) -> tuple[AuditEntry, ...]:
        """The latest entries, newest first."""
        with self._database.errors():
            rows = self._database.read().execute(self._sql["noted"], {"limit": limit}).fetchall()
        return tuple(AuditEntry(**dict(row)) for row in rows)


def insert_secrets(connection: sqlite3.Connection, memory: int, secrets: Sequence[Sealed]) -> None:
    for sealed in secrets:
        connection.execute(queries("secrets")["insert"], {"memory": memory, **msgspec.structs.asdict(sealed)})


def chained(before: bytes, entry: AuditEntry) -> bytes:
    return hashlib.sha256(before + msgspec.json.encode(entry)).digest()


def broken_links(connection: sqlite3.Connection) -> int:
    """How many entries of the audit record do not follow from the one before."""
    before, broken = b"", 0
    for row in connection.execute(queries("secrets")["every_note"]):
        entry = AuditEntry(at=row["at"], act=row["act"], memory=row["memory"], detail=row["detail"])
        broken += row["hash"] != chained(before, entry)
        before = row["hash"]
    return broken
