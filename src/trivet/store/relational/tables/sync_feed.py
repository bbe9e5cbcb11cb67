"""The server's side of sync: numbers changed memories in commit order.

The first reader of the feed numbers what the change log lists, so that a store without laptops pays
nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta

import msgspec

from trivet.common.clock import ClockReading, elapsed_seconds, moment, now, read_clock, stamp
from trivet.common.ids import new_id
from trivet.errors import Conflict
from trivet.memory_fields import as_json
from trivet.store.records import ShareRecord
from trivet.store.relational.changes import MODELS_KEY
from trivet.store.relational.database import Connection, Database, StorePart, WriteTransaction
from trivet.store.relational.tables.sync_bundles import bundle_digest, name_revisions, read_bundles

# Name in `meta`, once the store takes part in sync.
SYNC = "sync"
# Bounds the histories that are in memory together.
NUMBERING_BATCH = 500
MARK_BYTES = 8
# Takes about a second, in which other writers wait.
FIRST_NUMBERING_BATCH = 2_000
# A laptop away for longer reads everything again.
KEPT_DAYS = 400

# How precisely a laptop's last contact is recorded; enough for a limit in days.
CONTACT_NOTED_SECONDS = 3600.0
# If more memories changed, everybody is notified, not only affected users.
MAX_AFFECTED_MEMORIES = 1_000
# A laptop with a forgotten epoch starts a new one.
MAX_PAST_EPOCHS = 64

Grant = tuple[str, str]  # (grantee, permission)


class ServerState(msgspec.Struct, frozen=True, kw_only=True):
    """The last change numbered (`change`) and the last number given (`seq`), by epoch.

    A laptop that knows one of the `past` epochs synced before the server was restored.
    """

    role: str = "server"
    epoch: str
    past: tuple[str, ...] = ()
    seq: int = 0
    top: int = 0
    mark: str = ""
    change: int = 0
    begun: int = -1  # last change when the first numbering began, which takes several batches
    unfinished: bool = False
    horizon: int = 0  # notices up to here are trimmed; a laptop behind it reads everything again
    trimmed: str = ""


class _FollowerState(msgspec.Struct, frozen=True):
    """The part of a laptop's state (sync/laptop_state.py) that opening needs."""

    role: str
    contact: str = ""
    hidden: bool = False
    away: float = 0.0
    looked: ClockReading | None = None


class FeedEvent(msgspec.Struct, frozen=True):
    """A changed memory by key, or a revoked or purged one by id."""

    seq: int
    key: int = 0
    id: str = ""
    scope: str = ""
    purged: str | None = None  # its owner
    first_rev: str | None = None  # of what was purged


class SyncFeed(StorePart):
    file = "sync"

    @property
    def database(self) -> Database:
        """The database without a viewer; the caller must limit what each user gets."""
        return self._database

    def transaction(self) -> AbstractContextManager[WriteTransaction]:
        return self._database.write()

    def erasing(self) -> AbstractContextManager[WriteTransaction]:
        return self._database.erasing()

    def snapshot(self) -> AbstractContextManager[Connection]:
        return self._database.snapshot()

    def last_change(self) -> int:
        return last_change(self._database.read_unrestricted())

    def is_laptop(self) -> bool:
        return self._follower_state() is not None

    def _follower_state(self) -> _FollowerState | None:
        row = (
            self._database.read_unrestricted()
            .execute(self._database.sql("maintenance")["get_meta"], {"name": SYNC})
            .fetchone()
        )
        state = None if row is None else msgspec.json.decode(row[0], type=_FollowerState)
        return state if state and state.role == "laptop" else None

    def hide_shared_if_offline(self, days: int) -> None:
        """Hide shared memories after `days` offline, since they may have been revoked.

        Sum the time away over checks, so that changing the clock has no effect while the machine
        runs. Across a restart, hide them in doubt.
        """
        state = self._follower_state()
        if state is None or state.hidden or not state.contact:
            return
        latest = read_clock()
        before = state.looked or ClockReading(at=state.contact)
        away = state.away + elapsed_seconds(before, latest)
        hides = away > timedelta(days=days).total_seconds()
        if not hides and away - state.away < CONTACT_NOTED_SECONDS and latest.at >= before.at:
            return
        with self._database.write() as connection:
            sql = connection.sql("replica")
            noted = {"name": SYNC, "away": away, "looked": msgspec.json.encode(latest).decode()}
            connection.execute(sql["note_away"], noted)
            if hides:
                for row in connection.execute(sql["others"]).fetchall():
                    connection.note_change(row[0])
                connection.execute(sql["hide_others"])
                connection.execute(sql["note_hidden"], {"name": SYNC})

    def state(self, connection: Connection | None = None) -> ServerState | None:
        connection = connection or self._database.read_unrestricted()
        row = connection.execute(
            connection.sql("maintenance")["get_meta"], {"name": SYNC}
        ).fetchone()
        if row is not None and msgspec.json.decode(row[0], type=_FollowerState).role == "laptop":
            raise Conflict(
                "This store follows a server itself, so no laptop can follow it. "
                "Join that server instead."
            )
        return None if row is None else msgspec.json.decode(row[0], type=ServerState)

    def begin(self, connection: WriteTransaction, seen: str | None = None) -> ServerState:
        """Start a new epoch: laptops must read everything again. `seen` is a laptop's epoch."""
        state = self.state(connection) or ServerState(epoch="")
        past = tuple(epoch for epoch in dict.fromkeys((*state.past, state.epoch, seen)) if epoch)[
            -MAX_PAST_EPOCHS:
        ]
        state = msgspec.structs.replace(state, epoch=new_id(), past=past)
        self._save(connection, state)
        return state

    def is_behind(self, state: ServerState | None) -> bool:
        return state is None or last_change(self._database.read_unrestricted()) != state.change

    def number(self, connection: WriteTransaction, marks: bool = False) -> ServerState:
        """Number what changed; with `marks`, mark even no change, which confirms an edit."""
        connection.record_changes()
        state = self.state(connection) or self.begin(connection)
        last = last_change(connection)
        if (
            last == state.change
            and not marks
            and not connection.execute(self._sql["unnumbered"]).fetchone()
        ):
            return state
        if state.change == 0:
            state = self._number_first(connection, state, last)
            if state.unfinished:
                return state
        seq = state.seq
        keys = changed_keys(connection, state.change, last) if last != state.change else []
        for start in range(0, len(keys), NUMBERING_BATCH):
            seq = self._number_memories(connection, keys[start : start + NUMBERING_BATCH], seq)
        seq = self._number_purges(connection, seq)
        seq += marks and seq == state.seq
        state = self._trimmed(connection, msgspec.structs.replace(state, change=last))
        return self._marked(connection, state, seq)

    def _number_first(
        self, connection: WriteTransaction, state: ServerState, last: int
    ) -> ServerState:
        """Number in batches, so that nobody waits long for a large store."""
        begun = last if state.begun < 0 else state.begun
        keys = [
            int(row[0])
            for row in connection.execute(
                self._sql["unfed"], {"limit": FIRST_NUMBERING_BATCH}
            ).fetchall()
        ]
        seq = state.seq
        for start in range(0, len(keys), NUMBERING_BATCH):
            seq = self._number_memories(connection, keys[start : start + NUMBERING_BATCH], seq)
        unfinished = len(keys) == FIRST_NUMBERING_BATCH
        change = 0 if unfinished else begun
        state = msgspec.structs.replace(state, begun=begun, unfinished=unfinished, change=change)
        return self._marked(connection, state, seq)

    def _marked(self, connection: WriteTransaction, state: ServerState, seq: int) -> ServerState:
        state = msgspec.structs.replace(state, seq=seq)
        if seq > state.top:
            mark = secrets.token_hex(MARK_BYTES)
            connection.execute(self._sql["put_numbering"], {"seq": seq, "mark": mark, "at": now()})
            state = msgspec.structs.replace(state, top=seq, mark=mark)
        self._save(connection, state)
        return state

    def _number_memories(self, connection: WriteTransaction, keys: Sequence[int], seq: int) -> int:
        name_revisions(connection, keys)
        bundles = read_bundles(connection, keys)
        readers = self._readers(connection, keys)
        judged = self._judged(connection, keys)
        rows = connection.execute(self._sql["known"], {"keys": as_json(keys)}).fetchall()
        known = {row["memory"]: row for row in rows}
        for key in keys:
            if key in bundles:
                digest = bundle_digest(bundles[key], readers.get(key, []), *judged.get(key, ()))
                seq = self._number(
                    connection,
                    key,
                    bundles[key].id,
                    digest,
                    readers.get(key, ()),
                    known.get(key),
                    seq,
                )
        return seq

    def _number(
        self,
        connection: WriteTransaction,
        key: int,
        id: str,
        digest: str,
        readers: Sequence[Grant],
        known: object,
        seq: int,
    ) -> int:
        if known is not None and known["digest"] == digest:  # type: ignore[index]
            return seq
        seq += 1
        values = {"key": key, "id": id, "seq": seq, "digest": digest, "readers": as_json(readers)}
        connection.execute(self._sql["put_feed"], values)
        before = (
            msgspec.json.decode(known["readers"], type=list[Grant])  # type: ignore[index]
            if known is not None
            else []
        )
        return self._revoke(connection, id, _lost_access(before, readers), seq, None)

    def _number_purges(self, connection: WriteTransaction, seq: int) -> int:
        for row in connection.execute(self._sql["unnumbered"]).fetchall():
            known = connection.execute(
                self._sql["known"], {"keys": as_json([row["memory"]])}
            ).fetchone()
            seq += 1
            connection.execute(self._sql["number_tombstone"], {"id": row["id"], "seq": seq})
            grantees = {row["owner"], *(_readers(known["readers"]) if known else ())}
            self._revoke(connection, row["id"], grantees, seq - 1, row["owner"])
            connection.execute(self._sql["drop_feed"], {"key": row["memory"]})
        return seq

    def _revoke(
        self,
        connection: WriteTransaction,
        id: str,
        grantees: Iterable[str],
        seq: int,
        purged: str | None,
    ) -> int:
        listed = sorted(grantees)
        for grantee in listed:
            values = {"grantee": grantee, "seq": seq + 1, "id": id, "purged": purged, "at": now()}
            connection.execute(self._sql["put_revoked"], values)
        return seq + 1 if listed else seq

    def _readers(self, connection: Connection, keys: Sequence[int]) -> dict[int, list[Grant]]:
        readers: dict[int, list[Grant]] = {}
        for row in connection.execute(self._sql["readers_of"], {"keys": as_json(keys)}).fetchall():
            readers.setdefault(row[0], []).append((row[1], row[2]))
        return readers

    def _judged(
        self, connection: Connection, keys: Sequence[int]
    ) -> dict[int, list[tuple[str, ...]]]:
        judged: dict[int, list[tuple[str, ...]]] = {}
        for row in connection.execute(self._sql["feedback_of"], {"keys": as_json(keys)}).fetchall():
            judged.setdefault(row["memory"], []).append(
                (row["actor"], row["query"], row["verdict"])
            )
        return judged

    def _save(self, connection: WriteTransaction, state: ServerState) -> None:
        value = msgspec.json.encode(state).decode()
        connection.execute(
            connection.sql("maintenance")["set_meta"], {"name": SYNC, "value": value}
        )

    def knows(self, connection: Connection, top: int, mark: str) -> bool:
        """Return whether this server, since its last restore, gave this numbering."""
        row = connection.execute(self._sql["mark"], {"seq": top}).fetchone()
        return row is not None and row[0] == mark

    def events(
        self, connection: Connection, viewer: str, after: int, limit: int
    ) -> tuple[list[FeedEvent], bool]:
        """Return the next entries for a user, and whether there are more."""
        values = {"viewer": viewer, "seq": after, "limit": limit + 1}
        changed = connection.execute(self._sql["changed"], values).fetchall()
        revoked = connection.execute(self._sql["revoked"], values).fetchall()
        events = [FeedEvent(row[0], key=row[1], id=row[2], scope=row[3]) for row in changed]
        events += [FeedEvent(row[0], id=row[1], purged=row[2], first_rev=row[3]) for row in revoked]
        events.sort(key=lambda event: event.seq)
        return events[:limit], len(events) > limit

    def affected_users(self, connection: Connection, after: int) -> dict[str, int] | None:
        """Return users with their last number, or None if too many changed."""
        rows = connection.execute(
            self._sql["numbered_since"], {"seq": after, "limit": MAX_AFFECTED_MEMORIES}
        ).fetchall()
        if len(rows) == MAX_AFFECTED_MEMORIES:
            return None
        found: dict[str, int] = {}
        for row in rows:
            for user in (row["owner"], *_readers(row["readers"])):
                found[user] = max(found.get(user, 0), row["seq"])
        for row in connection.execute(self._sql["revoked_since"], {"seq": after}).fetchall():
            found[row["grantee"]] = max(found.get(row["grantee"], 0), row["seq"])
        return found

    def tag_shares(self, connection: Connection, owner: str) -> tuple[ShareRecord, ...]:
        rows = connection.execute(self._sql["tag_shares"], {"owner": owner}).fetchall()
        return tuple(ShareRecord(tag=row[0], grantee=row[1], permission=row[2]) for row in rows)

    def _trimmed(self, connection: WriteTransaction, state: ServerState) -> ServerState:
        today = moment(now())
        if state.trimmed and today - moment(state.trimmed) < timedelta(days=1):
            return state
        before = {"before": stamp(today - timedelta(days=KEPT_DAYS))}
        row = connection.execute(self._sql["last_forgotten"], before).fetchone()
        for name in ("trim_applied", "trim_revoked"):
            connection.execute(self._sql[name], before)
        return msgspec.structs.replace(
            state, horizon=max(state.horizon, row[0] or 0), trimmed=now()
        )


def _lost_access(before: Sequence[Grant], after: Sequence[Grant]) -> set[str]:
    readers, writers = (
        {grantee for grantee, _ in after},
        {grantee for grantee, right in after if right == "write"},
    )
    return {
        grantee
        for grantee, right in before
        if grantee not in (writers if right == "write" else readers)
    }


def _readers(text: str) -> set[str]:
    return {grantee for grantee, _ in msgspec.json.decode(text)}


def last_change(connection: Connection) -> int:
    row = connection.execute(connection.sql("memories")["last_change"]).fetchone()
    return int(row[0]) if row else 0


def changed_keys(connection: Connection, since: int, last: int) -> list[int]:
    """Return changed memories, or all if the change log starts later."""
    rows = connection.execute(
        connection.sql("memories")["changes_since"], {"sequence": since}
    ).fetchall()
    if since == 0 or last < since or not rows or rows[0][0] != since + 1:
        return [
            int(row[0]) for row in connection.execute(connection.sql("sync")["keys"]).fetchall()
        ]
    return list(dict.fromkeys(int(row[1]) for row in rows if row[1] != MODELS_KEY))
