"""A write that is known by a key of its caller's, so that it acts once however often it is asked for.

What is kept of it lies in the store and is sealed with a key made from two secrets of the caller's, neither of which is
stored: an answer may quote memories, and must not outlive them in the clear when they are purged.
"""

from __future__ import annotations

import hmac
import os
import uuid
from typing import TYPE_CHECKING

from trivet.errors import StoreError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NONCE_BYTES = 12


class Repeatable:
    def __init__(self, secret: bytes, key: str, asked: bytes) -> None:
        self._root = hmac.digest(secret, b"trivet once " + key.encode(), "sha256")
        self.name = self._made("name")
        self.request = hmac.digest(self._root, asked, "sha256")

    def id(self, number: int = 0) -> str:
        """For a memory that was sent without one: should the same request ever act again, it makes the same memory."""
        return str(uuid.UUID(bytes=self._made(f"id {number}")[:16], version=5))

    def seal(self, answer: bytes) -> bytes:
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher().encrypt(nonce, answer, self.name)

    def open(self, sealed: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher().decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], self.name)
        except InvalidTag:
            raise StoreError("The answer that was kept for this Idempotency-Key is damaged. Use a new key.") from None

    def _cipher(self) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 55 ms, which a reader need not wait

        return AESGCM(self._made("seal"))

    def _made(self, purpose: str) -> bytes:
        return hmac.digest(self._root, purpose.encode(), "sha256")
