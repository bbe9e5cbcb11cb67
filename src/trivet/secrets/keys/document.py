"""All keys as one small JSON document, the same in a file, a keyring or a vault."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Collection, Mapping
from typing import Protocol

import msgspec

from trivet.clock import now
from trivet.decoding import known_type
from trivet.errors import SecretError

KEY_BYTES = 32
# Stands among the users of a key that was made before its users were noted.
UNNOTED = "stores that used it before users of keys were noted"
# So many are listed by name, since the document is read with every secret; then it is only noted that there are more.
MOST_USERS = 200
MORE = "more stores than are listed"


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Keys by id, oldest first, in base64; `current` seals, the others only open what they sealed.

    `users` names the stores that may hold something that a key sealed. A store is noted before it seals with a key or
    opens by it, so a key without users can be dropped.
    """

    current: str
    keys: Mapping[str, str]
    users: Mapping[str, tuple[str, ...]] = {}

    def secret(self, id: str) -> bytes | None:
        text = self.keys.get(id)
        return None if text is None else base64.b64decode(text)

    def users_of(self, id: str) -> tuple[str, ...]:
        return self.users.get(id, (UNNOTED,))

    def before(self, id: str) -> tuple[str, ...]:
        """The keys that are older than this one."""
        ids = tuple(self.keys)
        return ids[: ids.index(id)] if id in ids else ()

    def with_new(self) -> Keys:
        id = f"{now()[:10]}-{secrets.token_hex(4)}"
        key = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
        return Keys(id, {**self.keys, id: key}, {**self.users, id: ()})

    def used(self, id: str, user: str) -> Keys:
        """With a store noted as a user of a key."""
        users = self.users_of(id)
        if not user or id not in self.keys or user in users or MORE in users:
            return self
        if len(users) >= MOST_USERS:
            user = MORE
        return Keys(self.current, self.keys, {**self.users, id: (*users, user)})

    def let_go(self, ids: Collection[str], user: str) -> Keys:
        """Without this user of these keys."""
        left = {id: tuple(one for one in self.users_of(id) if one != user) for id in ids if id in self.keys}
        return Keys(self.current, self.keys, {**self.users, **left})

    def without(self, ids: Collection[str]) -> Keys:
        gone = set(ids) - {self.current}
        keys = {id: key for id, key in self.keys.items() if id not in gone}
        return Keys(self.current, keys, {id: users for id, users in self.users.items() if id in keys})


EMPTY = Keys("", {})


class Place(Protocol):
    """Where the document is kept. `write` is a compare-and-set: it returns False if the document is not `before`."""

    @property
    def name(self) -> str: ...
    def read(self) -> Keys: ...
    def write(self, before: Keys, after: Keys) -> bool: ...


def encode(keys: Keys) -> bytes:
    return msgspec.json.encode(keys)


def decode(data: bytes | str, place: str) -> Keys:
    try:
        keys = msgspec.json.decode(data, type=known_type(Keys))
        sizes = {len(base64.b64decode(key, validate=True)) for key in keys.keys.values()}
    except (msgspec.DecodeError, msgspec.ValidationError, binascii.Error, ValueError):
        raise SecretError(f"{place} does not hold Trivet's keys, or they are damaged. Put back a copy of it.") from None
    if sizes - {KEY_BYTES} or keys.current not in keys.keys:
        raise SecretError(f"{place} holds keys of the wrong size or no current one. Put back a copy of it.")
    return keys
