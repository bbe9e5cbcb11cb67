"""Performing a verb: the one place that checks rights and completes ids, for every surface.

A write that must act only once is recorded with its answer. Two secrets of the caller seal it: it
may quote memories and must not be readable after they are purged.
"""

from __future__ import annotations

import hmac
import os
import re
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from trivet.contract import Request, verb_of
from trivet.contract.parameters import ID_LENGTH, MIN_ID_PREFIX, IdOf, id_fields
from trivet.errors import InvalidInput, NotFound, StoreError
from trivet.memory.engine import Engine

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM


T = TypeVar("T")


def perform(engine: Engine, request: Request[T]) -> T:
    verb = verb_of(request)
    engine.demand(verb.needs)
    request = complete_ids(engine, request)
    if getattr(request, "reveal", False):
        note_reveal(engine, verb.name, getattr(request, "id", None))
    answer: T = verb.perform(engine, request)
    return answer


def note_reveal(engine: Engine, verb: str, id: str | None) -> None:
    engine.demand("reveal")
    if engine.caller:
        engine.store.audit.note("reveal sensitive", id, verb)


R = TypeVar("R", bound=Request[Any])

MAX_MATCHES_LISTED = 8
_ID_PREFIX = re.compile(r"[0-9a-f-]+")


def complete_ids(engine: Engine, request: R) -> R:
    """Complete shortened ids; one that matches none or several raises."""
    whole: dict[str, Any] = {}
    for field, kind in id_fields(type(request)).items():
        given = getattr(request, field)
        if isinstance(given, str) and len(given) < ID_LENGTH:
            whole[field] = complete_id(engine, given, kind, field)
        elif isinstance(given, tuple):
            whole[field] = tuple(
                one if len(one) >= ID_LENGTH else complete_id(engine, one, kind, field)
                for one in given
            )
    return msgspec.structs.replace(request, **whole) if whole else request


def complete_id(engine: Engine, start: str, kind: IdOf, field: str) -> str:
    if not is_id_prefix(start):
        raise InvalidInput(
            f"{field}: {start!r} is not an id or the start of one. Ids look like "
            "0199c2f4-7d1e-7a3b-…."
        )
    found = ids_with_prefix(engine, start, kind)
    if not found:
        raise NotFound(
            f"There is no {kind} here whose id starts with {start}. `{_LISTING[kind]}` shows "
            "the ids."
        )
    if len(found) > 1:
        listed = ", ".join(found[:MAX_MATCHES_LISTED]) + (
            " and more" if len(found) > MAX_MATCHES_LISTED else ""
        )
        raise InvalidInput(
            f"{field}: {start} is the start of several ids. Give more characters of one of: "
            f"{listed}."
        )
    return found[0]


def is_id_prefix(text: str) -> bool:
    return (
        len(text.strip()) >= MIN_ID_PREFIX
        and _ID_PREFIX.fullmatch(text.strip().lower()) is not None
    )


def ids_with_prefix(engine: Engine, start: str, kind: IdOf) -> list[str]:
    starting: Mapping[IdOf, Callable[[str, int], list[str]]] = {
        "memory": engine.store.memories.ids_with_prefix,
        "proposal": engine.store.inbox.ids_with_prefix,
    }
    return starting[kind](start.strip().lower(), MAX_MATCHES_LISTED + 1)


_LISTING: Mapping[IdOf, str] = {"memory": "list", "proposal": "inbox"}


NONCE_BYTES = 12


class IdempotencyRecord:
    def __init__(self, secret: bytes, key: str, asked: bytes) -> None:
        self._root = hmac.digest(secret, b"trivet once " + key.encode(), "sha256")
        self.name = self._made("name")
        self.request = hmac.digest(self._root, asked, "sha256")

    def id(self, number: int = 0) -> str:
        """Return an id for a new memory, the same for a repeated request."""
        return str(uuid.UUID(bytes=self._made(f"id {number}")[:16], version=5))

    def seal(self, answer: bytes) -> bytes:
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher().encrypt(nonce, answer, self.name)

    def open(self, sealed: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher().decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], self.name)
        except InvalidTag:
            raise StoreError(
                "The answer stored for this Idempotency-Key is damaged. Use a new key."
            ) from None

    def _cipher(self) -> AESGCM:
        # The import takes 55 ms.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._made("seal"))

    def _made(self, purpose: str) -> bytes:
        return hmac.digest(self._root, purpose.encode(), "sha256")
