"""Who may read and change what: accounts, shares, owners' rights, and sealed secrets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

import msgspec

from trivet.common.clock import moment, moment_or_none, now, stamp, stamp_or_none
from trivet.errors import Conflict, Forbidden, InvalidInput, NotFound, RetiredKey
from trivet.memory_fields import as_json, texts
from trivet.store.records import StoredKey
from trivet.store.relational.database import Connection, Database, Row, StorePart, WriteTransaction
from trivet.store.relational.tables.ledgers import note, record_write
from trivet.store.relational.tables.memory_rows import memory_from_row
from trivet.types import (
    LOCAL,
    AuditEntry,
    Key,
    Memory,
    Permission,
    Role,
    Sealed,
    Share,
    User,
)


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
        """Return whether memories or proposals have this owner, even a removed one."""
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
            owner=self._current_user,
            tag=tag,
            user=user,
            permission=permission,
            created_at=moment(now()),
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
            values = {"owner": self._current_user, "tag": tag, "user": user}
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
        return (*(_share("id", row) for row in memories), *(_share("tag", row) for row in tags))

    @property
    def _current_user(self) -> str:
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
            self._sql["tagged"], {"owner": self._current_user, "tag": tag}
        ).fetchall():
            connection.note_change(row[0])


def _share(shared: Literal["id", "tag"], row: Row) -> Share:
    owner, name, user, permission, created_at = tuple(row)
    made = moment(created_at)
    return Share(owner=owner, user=user, permission=permission, created_at=made, **{shared: name})


# Never allowed by a share.
OWNER_ONLY_ACTIONS = ("forget", "restore", "purge", "import", "redact")
# These decide who sees a memory and whether recall finds it.
OWNER_ONLY_FIELDS = ("tags", "scope", "sensitive", "state", "valid_from", "valid_to")


def check_rights(
    connection: Connection, viewer: str | None, row: Row, action: str, new: Memory | None = None
) -> None:
    """Raise Forbidden if the viewer may not act on the memory, or not change it to `new`."""
    owner = row["owner"]
    if viewer is None or viewer == owner:
        return
    if action in OWNER_ONLY_ACTIONS:
        raise Forbidden(
            f"This memory belongs to {owner}. Only its owner can {action} it. Nothing was changed."
        )
    values = {"key": row["key"], "viewer": viewer}
    if connection.execute(connection.sql("visible")["writable"], values).fetchone() is None:
        raise Forbidden(
            f"This memory belongs to {owner} and is shared with you for reading only. "
            "Nothing was changed."
        )
    old = memory_from_row(row)
    if new is not None and any(
        getattr(new, name) != getattr(old, name) for name in OWNER_ONLY_FIELDS
    ):
        raise Forbidden(
            f"Only its owner {owner} can change the tags, scope, sensitivity, state or times "
            "of a memory, since these decide who sees it and whether recall finds it. "
            "Nothing was changed."
        )


class Secrets(StorePart):
    file = "secrets"

    def of(self, id: str) -> tuple[Sealed, ...]:
        return tuple(_sealed(row) for row in self._rows("of", id=id, viewer=self._database.viewer))

    def keys_in_use(self) -> tuple[str, ...]:
        return tuple(row[0] for row in self._rows("keys"))

    def not_under(self, key: str, limit: int) -> tuple[tuple[str, Sealed], ...]:
        """Return some secrets sealed by another key, each with its memory's id."""
        return tuple(
            (row["id"], _sealed(row)) for row in self._rows("not_under", key=key, limit=limit)
        )

    def is_retired(self, key: str) -> bool:
        return self._row("retired_by", name=_retired(key)) is not None

    def retire(self, keys: Collection[str], by: str) -> None:
        """Reject further writes sealed with these keys, so that they can be dropped safely.

        A writer that has sealed with one and not committed yet must seal again.
        """
        with self._database.write() as connection:
            _check_not_retired(connection, {by})
            for key in keys:
                connection.execute(self._sql["retire"], {"name": _retired(key), "by": by})

    def reseal(self, done: Sequence[tuple[str, Sealed]]) -> None:
        with self._database.write() as connection:
            _check_not_retired(connection, {sealed.key for _, sealed in done})
            for id, sealed in done:
                connection.execute(
                    self._sql["reseal"], {"id": id, **msgspec.structs.asdict(sealed)}
                )


def check_keys(connection: WriteTransaction, secrets: Iterable[Sealed]) -> None:
    """Raise RetiredKey before anything is written, so that the caller can seal again."""
    _check_not_retired(connection, {sealed.key for sealed in secrets})


def insert_secrets(connection: WriteTransaction, memory: int, secrets: Sequence[Sealed]) -> None:
    for sealed in secrets:
        connection.execute(
            connection.sql("secrets")["insert"],
            {"memory": memory, **msgspec.structs.asdict(sealed)},
        )


def _check_not_retired(connection: WriteTransaction, keys: Collection[str]) -> None:
    for key in sorted(keys):
        row = connection.execute(
            connection.sql("secrets")["retired_by"], {"name": _retired(key)}
        ).fetchone()
        if row is not None:
            raise RetiredKey(
                f"The key {key} was replaced here by {row[0]}. Nothing was written; try again. "
                "If the error persists, an old copy of the keys was restored: "
                "`trivet rotate-keys` makes a new one."
            )


def _retired(key: str) -> str:
    return f"retired key {key}"


def _sealed(row: Row) -> Sealed:
    fields = {name: row[name] for name in Sealed.__struct_fields__}
    return Sealed(**{**fields, "nonce": bytes(row["nonce"]), "sealed": bytes(row["sealed"])})
