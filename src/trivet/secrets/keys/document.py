"""All keys as one small JSON document, the same in a file, a keyring or a vault."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Mapping
from typing import Protocol

import msgspec

from trivet.clock import now
from trivet.errors import SecretError

KEY_BYTES = 32


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Keys by id, in base64; `current` seals, the others only open what they sealed."""

    current: str
    keys: Mapping[str, str]

    def secret(self, id: str) -> bytes | None:
        text = self.keys.get(id)
        return None if text is None else base64.b64decode(text)

    def with_new(self) -> Keys:
        id = f"{now()[:10]}-{secrets.token_hex(4)}"
        return Keys(id, {**self.keys, id: base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()})

    def without(self, ids: set[str]) -> Keys:
        return Keys(self.current, {id: key for id, key in self.keys.items() if id not in ids or id == self.current})


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
        keys = msgspec.json.decode(data, type=Keys)
        sizes = {len(base64.b64decode(key, validate=True)) for key in keys.keys.values()}
    except (msgspec.DecodeError, msgspec.ValidationError, binascii.Error, ValueError):
        raise SecretError(f"{place} does not hold Trivet's keys, or they are damaged. Put back a copy of it.") from None
    if sizes - {KEY_BYTES} or keys.current not in keys.keys:
        raise SecretError(f"{place} holds keys of the wrong size or no current one. Put back a copy of it.")
    return keys
