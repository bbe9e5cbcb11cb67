"""Encrypts secrets by AES-256-GCM, bound to their place: moved to another memory or field they do not decrypt."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from trivet.errors import SecretError
from trivet.secrets.keys.ring import Key, KeyRing
from trivet.types import Sealed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

# 96 bits, as the standard wants; random, since several processes seal with one key.
NONCE_BYTES = 12


def seal(key: Key, memory: str, revision: int, field: str, kind: str, number: int, value: str) -> Sealed:
    nonce = os.urandom(NONCE_BYTES)
    bare = Sealed(revision=revision, field=field, kind=kind, number=number, key=key.id, nonce=nonce, sealed=b"")
    text = _cipher(key).encrypt(nonce, value.encode(), _place_of(memory, bare))
    return msgspec.structs.replace(bare, sealed=text)


def unseal(keys: KeyRing, memory: str, sealed: Sealed, note: bool = True) -> str:
    """With `note` the store is noted as a user of the key."""
    from cryptography.exceptions import InvalidTag

    cipher = _cipher(keys.get(sealed.key, note))
    try:
        return cipher.decrypt(sealed.nonce, sealed.sealed, _place_of(memory, sealed)).decode()
    except InvalidTag:
        raise SecretError(
            f"The {sealed.kind} in {sealed.field} of memory {memory} was damaged or moved. Restore a backup to read it."
        ) from None


def reseal(keys: KeyRing, key: Key, memory: str, old: Sealed) -> Sealed:
    """The same value under another key."""
    value = unseal(keys, memory, old)
    return seal(key, memory, old.revision, old.field, old.kind, old.number, value)


def _place_of(memory: str, sealed: Sealed) -> bytes:
    """The authenticated data. As JSON, so that no two places are written alike."""
    return msgspec.json.encode(["trivet", 1, memory, sealed.revision, sealed.field, sealed.kind, sealed.number])


@cache
def _ciphers() -> type[AESGCM]:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 55 ms, only where there is a secret

    return AESGCM


def _cipher(key: Key) -> AESGCM:
    return _ciphers()(key.secret)
