"""The chained record of acts: each entry's hash covers the one before, so a changed or missing one shows."""

from __future__ import annotations

import hashlib

import msgspec

from trivet.clock import now
from trivet.store.relational.database import Database, Row
from trivet.types import AuditEntry

_VERIFIED_AT_ONCE = 1000


class RelationalAudit:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.sql("audit")

    def note(self, act: str, memory: str | None, detail: str, actor: str | None = None) -> None:
        """Within a transaction it is part of it: what was not noted was not done."""
        entry = AuditEntry(at=now(), actor=actor, act=act, memory=memory, detail=detail)
        with self._database.write() as connection:
            last = connection.execute(self._sql["last"]).fetchone()
            sequence, before = (last["sequence"], bytes(last["hash"])) if last else (0, b"")
            row = {**msgspec.structs.asdict(entry), "sequence": sequence + 1, "hash": _chained(before, entry)}
            connection.execute(self._sql["note"], row)

    def noted(self, limit: int) -> tuple[AuditEntry, ...]:
        """The latest entries, newest first."""
        with self._database.errors():
            rows = self._database.read().execute(self._sql["noted"], {"limit": limit}).fetchall()
        return tuple(_entry(row) for row in rows)


def broken_links(database: Database) -> int:
    """How many entries do not follow from the one before, or are missing between two."""
    sequence, before, broken = 0, b"", 0
    while True:
        parameters = {"sequence": sequence, "limit": _VERIFIED_AT_ONCE}
        rows = database.read().execute(database.sql("audit")["after"], parameters).fetchall()
        for row in rows:
            follows = row["sequence"] == sequence + 1 and bytes(row["hash"]) == _chained(before, _entry(row))
            broken += not follows
            sequence, before = row["sequence"], bytes(row["hash"])
        if len(rows) < _VERIFIED_AT_ONCE:
            return broken


def _entry(row: Row) -> AuditEntry:
    return AuditEntry(at=row["at"], actor=row["actor"], act=row["act"], memory=row["memory"], detail=row["detail"])


def _chained(before: bytes, entry: AuditEntry) -> bytes:
    return hashlib.sha256(before + msgspec.json.encode(entry)).digest()
