"""The audit record, usage and feedback counts, idempotent requests, and ingested files.

The audit record is a hash chain, which shows changed or missing entries.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from trivet.common.clock import moment, moment_or_none, now, stamp
from trivet.errors import NotFound
from trivet.memory_fields import as_json
from trivet.store.records import (
    FeedbackEntry,
    StoredAnswer,
    VaultFile,
    VaultLink,
    VaultPart,
    VaultRecord,
)
from trivet.store.relational.database import Database, Row, StorePart, WriteTransaction
from trivet.store.relational.tables.memory_rows import key_by_id
from trivet.types import LOCAL, AuditEntry, Usage, Usefulness

_VERIFIED_AT_ONCE = 1000
# The record is never trimmed and has no index by actor.
_COUNTED_AMONG = 10_000


class Audit(StorePart):
    file = "audit"

    def note(self, act: str, memory: str | None, detail: str) -> None:
        with self._database.write() as connection:
            note(
                connection,
                [
                    AuditEntry(
                        at=moment(now()),
                        actor=self._database.viewer,
                        act=act,
                        memory=memory,
                        detail=detail,
                    )
                ],
            )

    def noted(self, limit: int, actor: str | None = None) -> tuple[AuditEntry, ...]:
        with self._database.errors():
            parameters = {"limit": limit, "actor": actor}
            rows = (
                self._database.read_unrestricted()
                .execute(self._sql["noted"], parameters)
                .fetchall()
            )
        return tuple(_entry(row) for row in rows)

    def count(self, act: str, since: str) -> int:
        with self._database.errors():
            parameters = {
                "actor": self._database.viewer,
                "act": act,
                "since": since,
                "latest": _COUNTED_AMONG,
            }
            return int(
                self._database.read_unrestricted()
                .execute(self._sql["count"], parameters)
                .fetchone()[0]
            )


def record_write(
    connection: WriteTransaction, viewer: str | None, act: str, ids: Sequence[str], detail: str = ""
) -> None:
    """Audit a user's write; the owner could forge the record anyway."""
    if viewer is not None and ids:
        at = moment(now())
        note(
            connection,
            [AuditEntry(at=at, actor=viewer, act=act, memory=id, detail=detail) for id in ids],
        )


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
    """Return how many entries do not follow from the previous one."""
    sequence, before, broken = 0, b"", 0
    while True:
        parameters = {"sequence": sequence, "limit": _VERIFIED_AT_ONCE}
        rows = database.read().execute(database.sql("audit")["after"], parameters).fetchall()
        for row in rows:
            follows = row["sequence"] == sequence + 1 and bytes(row["hash"]) == _chained(
                before, _entry(row)
            )
            broken += not follows
            sequence, before = row["sequence"], bytes(row["hash"])
        if len(rows) < _VERIFIED_AT_ONCE:
            return broken


def _entry(row: Row) -> AuditEntry:
    return AuditEntry(
        at=moment(row["at"]),
        actor=row["actor"],
        act=row["act"],
        memory=row["memory"],
        detail=row["detail"],
    )


def _row(entry: AuditEntry) -> dict[str, object]:
    return {**msgspec.structs.asdict(entry), "at": stamp(entry.at)}


def _chained(before: bytes, entry: AuditEntry) -> bytes:
    return hashlib.sha256(before + msgspec.json.encode(_row(entry))).digest()


class UsageCounts(StorePart):
    file = "usage"

    def note(self, shown: Mapping[str, int]) -> None:
        moment = now()
        with self._database.take() as connection:
            connection.execute(self._sql["begin"], {"at": moment})
            counts = {"ids": as_json(shown), "times": as_json(shown.values())}
            connection.execute(self._sql["note"], {**counts, "at": moment})

    def since(self) -> str | None:
        row = self._row("since")
        return str(row[0]) if row else None

    def of(self, id: str) -> Usage:
        """Return a memory's counts, with the viewer's own ratings only."""
        row = self._row("of", id=id, viewer=self._database.viewer)
        if row is None:
            raise NotFound(f"There is no memory {id} in this store. `list` shows the existing ids.")
        return Usage(
            id=id,
            shown=row["shown"] or 0,
            last_shown=moment_or_none(row["last_shown"]),
            useful=row["useful"],
            not_useful=row["not_useful"],
        )

    def all(self) -> tuple[Usage, ...]:
        """Return all counts, by all users, for the store's owner."""
        return tuple(
            Usage(
                id=row["id"],
                shown=row["shown"],
                last_shown=moment_or_none(row["last_shown"]),
                useful=row["useful"],
                not_useful=row["not_useful"],
            )
            for row in self._rows("all")
        )

    def shown(self) -> frozenset[str]:
        return frozenset(row[0] for row in self._rows("shown"))

    def judge(self, id: str, query: str, verdict: Usefulness) -> None:
        """Replace the viewer's rating for this memory and query."""
        values = {
            "id": id,
            "actor": self._database.viewer or LOCAL,
            "query": query,
            "verdict": verdict,
            "at": now(),
        }
        with self._database.write() as connection:
            key = key_by_id(connection, id)
            if key is not None:
                connection.execute(self._sql["judge"], values)
                connection.note_change(key)

    def judged(self) -> tuple[FeedbackEntry, ...]:
        return tuple(FeedbackEntry(*row) for row in self._rows("judged"))


KEPT_SECONDS = 24 * 3600.0
# A row that blocks an insert may be gone when it is read.
MAX_ATTEMPTS = 3


class Idempotency(StorePart):
    """Requests that act once; names and answers are digests or sealed."""

    file = "idempotency"

    def begin(self, name: bytes, request: bytes, lease_seconds: float) -> StoredAnswer | None:
        """Return None if the caller must act; a dead caller's lease expires."""
        moment = time.time()
        row = {"name": name, "request": request, "taken_at": moment}
        with self._database.take() as connection:
            connection.execute(self._sql["forget"], _time_bounds(moment, KEPT_SECONDS))
            for _ in range(MAX_ATTEMPTS):
                if connection.execute(self._sql["begin"], row).rowcount:
                    return None
                if connection.execute(
                    self._sql["take_over"], {**row, **_time_bounds(moment, lease_seconds)}
                ).rowcount:
                    return None
                found = connection.execute(self._sql["kept"], {"name": name}).fetchone()
                if found is not None:
                    return StoredAnswer(
                        request=bytes(found[0]),
                        answer=None if found[1] is None else bytes(found[1]),
                    )
        return StoredAnswer(request=request)

    def act(
        self, name: bytes, request: bytes, act: Callable[[], bytes], lease_seconds: float = 0.0
    ) -> StoredAnswer:
        """Act and store the answer in one transaction: a retry finds both or neither."""
        moment = time.time()
        row = {"name": name, "request": request, "taken_at": moment}
        with self._database.write() as connection:
            connection.execute(self._sql["forget"], _time_bounds(moment, KEPT_SECONDS))
            begun = connection.execute(self._sql["begin"], row).rowcount
            stale = {**row, **_time_bounds(moment, lease_seconds)}
            if begun or connection.execute(self._sql["take_over"], stale).rowcount:
                answer = act()
                connection.execute(self._sql["finish"], {"name": name, "answer": answer})
                return StoredAnswer(request=request, answer=answer, acted=True)
            kept, answered = connection.execute(self._sql["kept"], {"name": name}).fetchone()
            return StoredAnswer(
                request=bytes(kept), answer=None if answered is None else bytes(answered)
            )

    def finish(self, name: bytes, answer: bytes) -> None:
        with self._database.take() as connection:
            connection.execute(self._sql["finish"], {"name": name, "answer": answer})

    def give_up(self, name: bytes) -> None:
        with self._database.take() as connection:
            connection.execute(self._sql["give_up"], {"name": name})


def _time_bounds(moment: float, seconds: float) -> dict[str, float]:
    return {"before": moment - seconds, "after": moment + seconds}


class Vaults(StorePart):
    file = "vaults"

    def vaults(self) -> tuple[VaultRecord, ...]:
        return tuple(VaultRecord(*row) for row in self._rows("vaults"))

    def keep(self, vault: VaultRecord) -> None:
        with self._database.write() as connection:
            connection.execute(self._sql["put_vault"], msgspec.structs.asdict(vault))

    def drop(self, name: str) -> None:
        with self._database.write() as connection:
            connection.execute(self._sql["delete_vault"], {"name": name})

    def files(self, vault: str) -> tuple[VaultFile, ...]:
        return tuple(VaultFile(*row) for row in self._rows("files", vault=vault))

    def parts(self, vault: str) -> tuple[VaultPart, ...]:
        return tuple(VaultPart(*row) for row in self._rows("parts", vault=vault))

    def note_file(
        self, vault: str, file: VaultFile, parts: Sequence[VaultPart], gone: Sequence[str]
    ) -> None:
        """Keep those `gone` parts that another file has taken over."""
        with self._database.write() as connection:
            connection.execute(
                self._sql["put_file"], {"vault": vault, **msgspec.structs.asdict(file)}
            )
            for id in gone:
                connection.execute(
                    self._sql["delete_part"], {"vault": vault, "id": id, "path": file.path}
                )
            for part in parts:
                connection.execute(
                    self._sql["put_part"], {"vault": vault, **msgspec.structs.asdict(part)}
                )

    def forget_file(self, vault: str, path: str, gone: Sequence[str]) -> None:
        with self._database.write() as connection:
            connection.execute(self._sql["delete_file"], {"vault": vault, "path": path})
            for id in gone:
                connection.execute(
                    self._sql["delete_part"], {"vault": vault, "id": id, "path": path}
                )

    def set_lines(self, id: str, start: int | None, stop: int | None) -> None:
        """Move a part without a revision."""
        with self._database.write() as connection:
            connection.execute(self._sql["set_lines"], {"id": id, "start": start, "stop": stop})

    def links(self, vault: str) -> tuple[VaultLink, ...]:
        return tuple(VaultLink(*row) for row in self._rows("links", vault=vault))

    def note_links(
        self, vault: str, added: Sequence[VaultLink], removed: Sequence[VaultLink]
    ) -> None:
        with self._database.write() as connection:
            for link in added:
                connection.execute(
                    self._sql["put_link"], {"vault": vault, **msgspec.structs.asdict(link)}
                )
            for link in removed:
                connection.execute(
                    self._sql["delete_link"], {"vault": vault, **msgspec.structs.asdict(link)}
                )
