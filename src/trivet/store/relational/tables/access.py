"""Accounts, shares, and the audit record: a hash chain that shows changed or missing entries."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from trivet.common.clock import moment, moment_or_none, now, stamp, stamp_or_none
from trivet.errors import Conflict, Forbidden, InvalidInput, NotFound
from trivet.memory_fields import as_json, texts
from trivet.store.records import StoredKey
from trivet.store.relational.database import Connection, Database, Row, StorePart, WriteTransaction
from trivet.types import LOCAL, AuditEntry, Key, Permission, Role, Share, User


class Accounts(StorePart):
    """Users and the hashes of their keys, for the server and the store's owner only."""

    file = "accounts"

    def __init__(self, database: Database, actor: str | None = None) -> None:
        """Record `actor` in the audit; None stands for the store's owner."""
        super().__init__(database)
        self._actor = actor

    def add_user(self, name: str, role: Role) -> User:
        user = User(name=name, role=role, created_at=moment(now()))
        with self._database.write() as connection:
            if connection.execute(self._sql["user"], {"name": name}).fetchone():
                raise Conflict(f"User {name} already exists. Nothing was changed.")
            connection.execute(
                self._sql["add_user"],
                {"name": name, "role": role, "created_at": stamp(user.created_at)},
            )
            self._note(connection, "add user", f"{name}, {role}")
        return user

    def set_role(self, name: str, role: Role) -> None:
        with self._database.write() as connection:
            self._changed(
                connection.execute(self._sql["set_role"], {"name": name, "role": role}).rowcount,
                name,
            )
            self._note(connection, "change role", f"{name}, {role}")

    def remove_user(self, name: str) -> None:
        """Keep the memories, in case the user returns."""
        with self._database.write() as connection:
            self._changed(
                connection.execute(self._sql["remove_user"], {"name": name}).rowcount, name
            )
            for row in connection.execute(
                connection.sql("shares")["shown_to"], {"user": name}
            ).fetchall():
                connection.note_change(row[0])  # caches must forget who may see it
            for query in ("revoke_all", "revoke_all_tags"):
                connection.execute(connection.sql("shares")[query], {"user": name})
            self._note(connection, "remove user", name)

    def has(self, name: str) -> bool:
        return self._row("user", name=name) is not None

    def user(self, name: str) -> User:
        row = self._row("user", name=name)
        if row is None:
            raise NotFound(f"There is no user {name}. Add them first: `trivet user add {name}`.")
        return _user(row)

    def users(self) -> tuple[User, ...]:
        return tuple(_user(row) for row in self._rows("users"))

    def add_key(self, key: Key, hash: bytes) -> None:
        with self._database.write() as connection:
            self.user(key.user)
            connection.execute(
                self._sql["add_key"],
                {
                    "id": key.id,
                    "user": key.user,
                    "hash": hash,
                    "rights": as_json(key.rights),
                    "label": key.label,
                    "created_at": stamp(key.created_at),
                    "expires_at": stamp_or_none(key.expires_at),
                },
            )
            self._note(connection, "add key", f"{key.id} of {key.user}: {', '.join(key.rights)}")

    def key(self, id: str) -> StoredKey | None:
        row = self._row("key", id=id)
        return None if row is None else StoredKey(_key(row), bytes(row["hash"]), row["role"])

    def keys(self) -> tuple[Key, ...]:
        return tuple(_key(row) for row in self._rows("keys"))

    def revoke(self, id: str) -> None:
        with self._database.write() as connection:
            if not connection.execute(self._sql["revoke"], {"id": id, "moment": now()}).rowcount:
                raise NotFound(f"There is no active key {id}. `trivet key list` shows the keys.")
            self._note(connection, "revoke key", id)

    def has_stored(self, name: str) -> bool:
        """Return whether memories or proposals have this owner, even if the user is gone."""
        return bool(self._row("has_stored", name=name)[0])

    def _changed(self, rows: int, name: str) -> None:
        if not rows:
            raise NotFound(f"There is no user {name}. `trivet user list` shows the users.")

    def _note(self, connection: WriteTransaction, act: str, detail: str) -> None:
        note(
            connection,
            [AuditEntry(at=moment(now()), actor=self._actor, act=act, memory=None, detail=detail)],
        )


def _user(row: Row) -> User:
    return User(name=row[0], role=row[1], created_at=moment(row[2]))


def _key(row: Row) -> Key:
    return Key(
        id=row["id"],
        user=row["user"],
        rights=texts(row["rights"]),  # type: ignore[arg-type]  # validated when written
        label=row["label"],
        created_at=moment(row["created_at"]),
        expires_at=moment_or_none(row["expires_at"]),
        revoked_at=moment_or_none(row["revoked_at"]),
    )


class Shares(StorePart):
    file = "shares"

    def share_memory(self, id: str, user: str, permission: Permission) -> Share:
        with self._database.write() as connection:
            key, owner = self._owned(connection, id)
            if connection.execute(self._sql["is_sensitive"], {"key": key}).fetchone():
                raise InvalidInput(
                    f"Memory {id} is sensitive, so only its owner may read it. Nothing was shared."
                )
            share = Share(
                owner=owner, id=id, user=user, permission=permission, created_at=moment(now())
            )
            values = {
                "key": key,
                "user": user,
                "permission": permission,
                "created_at": stamp(share.created_at),
            }
            connection.execute(self._sql["share_memory"], values)
            connection.note_change(key)
            record_write(
                connection, self._database.viewer, "share", [id], f"{permission} for {user}"
            )
        return share

    def share_tag(self, tag: str, user: str, permission: Permission) -> Share:
        share = Share(
            owner=self._me, tag=tag, user=user, permission=permission, created_at=moment(now())
        )
        with self._database.write() as connection:
            values = {"owner": share.owner, "tag": tag, "user": user, "permission": permission}
            connection.execute(
                self._sql["share_tag"], {**values, "created_at": stamp(share.created_at)}
            )
            self._changed(connection, tag)
            record_write(
                connection,
                self._database.viewer,
                "share",
                [f"tag {tag}"],
                f"{permission} for {user}",
            )
        return share

    def unshare_memory(self, id: str, user: str) -> None:
        with self._database.write() as connection:
            key, _ = self._owned(connection, id)
            if not connection.execute(
                self._sql["unshare_memory"], {"key": key, "user": user}
            ).rowcount:
                raise NotFound(f"Memory {id} is not shared with {user}. `shares` lists the shares.")
            connection.note_change(key)
            record_write(connection, self._database.viewer, "unshare", [id], user)

    def unshare_tag(self, tag: str, user: str) -> None:
        with self._database.write() as connection:
            values = {"owner": self._me, "tag": tag, "user": user}
            if not connection.execute(self._sql["unshare_tag"], values).rowcount:
                raise NotFound(
                    f"The tag {tag} is not shared with {user}. `shares` lists the shares."
                )
            self._changed(connection, tag)
            record_write(connection, self._database.viewer, "unshare", [f"tag {tag}"], user)

    def all(self) -> tuple[Share, ...]:
        """Return shares the viewer made or received; without a viewer, all."""
        viewer = {"viewer": self._database.viewer}
        with self._database.errors():
            # Row-level security hides shares that a user made.
            connection = self._database.read_unrestricted()
            memories = connection.execute(self._sql["of_memories"], viewer).fetchall()
            tags = connection.execute(self._sql["of_tags"], viewer).fetchall()
        return (
            *(
                Share(
                    owner=row[0],
                    id=row[1],
                    user=row[2],
                    permission=row[3],
                    created_at=moment(row[4]),
                )
                for row in memories
            ),
            *(
                Share(
                    owner=row[0],
                    tag=row[1],
                    user=row[2],
                    permission=row[3],
                    created_at=moment(row[4]),
                )
                for row in tags
            ),
        )

    @property
    def _me(self) -> str:
        return self._database.viewer or LOCAL

    def _owned(self, connection: Connection, id: str) -> tuple[int, str]:
        values = {"id": id, "viewer": self._database.viewer}
        row = connection.execute(connection.sql("memories")["seen_by_id"], values).fetchone()
        if row is None:
            raise NotFound(f"There is no memory {id} in this store, so it cannot be shared.")
        if self._database.viewer not in (None, row["owner"]):
            raise Forbidden(f"Memory {id} belongs to {row['owner']}. Only its owner can share it.")
        return int(row["key"]), str(row["owner"])

    def _changed(self, connection: WriteTransaction, tag: str) -> None:
        for row in connection.execute(
            self._sql["tagged"], {"owner": self._me, "tag": tag}
        ).fetchall():
            connection.note_change(row[0])


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
    """Audit a user's write; the store's owner could forge the record anyway."""
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
