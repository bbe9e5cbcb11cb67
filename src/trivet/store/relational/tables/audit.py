"""The chained record of acts: each entry's hash covers the one before, so a changed or missing one shows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from trivet.common.clock import moment, now, stamp
from trivet.store.relational.database import Database, Row, StorePart, WriteTransaction
from trivet.types import AuditEntry

_VERIFIED_AT_ONCE = 1000
# A count looks at so many of the latest entries: the record is kept for ever and has no index by actor.
_COUNTED_AMONG = 10_000


class Audit(StorePart):
    file = "audit"

    def note(self, act: str, memory: str | None, detail: str) -> None:
        """Within a transaction it is part of it: what was not noted was not done."""
        with self._database.write() as connection:
            note(
                connection,
                [AuditEntry(at=moment(now()), actor=self._database.viewer, act=act, memory=memory, detail=detail)],
            )

    def noted(self, limit: int, actor: str | None = None) -> tuple[AuditEntry, ...]:
        """The latest entries, newest first; those of one actor, if named."""
        with self._database.errors():
            parameters = {"limit": limit, "actor": actor}
            rows = self._database.read_unrestricted().execute(self._sql["noted"], parameters).fetchall()
        return tuple(_entry(row) for row in rows)

    def count(self, act: str, since: str) -> int:
        """How often the viewer did this since a time, as far back as the latest entries reach."""
        with self._database.errors():
            parameters = {"actor": self._database.viewer, "act": act, "since": since, "latest": _COUNTED_AMONG}
            return int(self._database.read_unrestricted().execute(self._sql["count"], parameters).fetchone()[0])


def record_write(
    connection: WriteTransaction, viewer: str | None, act: str, ids: Sequence[str], detail: str = ""
) -> None:
    """Writes of users are on the record. The owner of the store needs none: revisions tell, and could be forged too."""
    if viewer is not None and ids:
        at = moment(now())
        note(connection, [AuditEntry(at=at, actor=viewer, act=act, memory=id, detail=detail) for id in ids])


def note(connection: WriteTransaction, entries: Sequence[AuditEntry]) -> None:
    sql = connection.sql("audit")
    last = connection.execute(sql["last"]).fetchone()
    sequence, hash = (last["sequence"], bytes(last["hash"])) if last else (0, b"")
    rows = []
    for entry in entries:
        sequence, hash = sequence + 1, _chained(hash, entry)
        rows.append({**_row(entry), "sequence": sequence, "hash": hash})
    connection.executemany(sql["note"], rows)


def count_broken_entries(database: Database) -> int:
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
    return AuditEntry(
        at=moment(row["at"]), actor=row["actor"], act=row["act"], memory=row["memory"], detail=row["detail"]
    )


def _row(entry: AuditEntry) -> dict[str, object]:
    """As it is stored and hashed, with its time as a stamp."""
    return {**msgspec.structs.asdict(entry), "at": stamp(entry.at)}


def _chained(before: bytes, entry: AuditEntry) -> bytes:
    return hashlib.sha256(before + msgspec.json.encode(_row(entry))).digest()
