"""One process's open tenants."""

from __future__ import annotations

import hmac
import secrets
from typing import Literal

from trivet.contract import Right
from trivet.errors import Unauthorised
from trivet.settings import Settings
from trivet.trivet import Trivet
from trivet.types import Value

Role = Literal["reader", "writer", "admin"]
RIGHTS: dict[str, frozenset[Right]] = {
    "reader": frozenset(("read",)),
    "writer": frozenset(("read", "write", "share", "reveal")),
    "admin": frozenset(("read", "write", "share", "reveal", "admin")),
}


class Caller(Value, frozen=True, kw_only=True):
    tenant: str
    user: str
    role: Role
    key: str
    rights: frozenset[Right]


class House:
    def __init__(self, settings: Settings) -> None:
        self._memory = Trivet.open(settings=settings)
        self._keys: dict[str, Caller] = {}

    def make_key(self, user: str, role: Role) -> str:
        id = secrets.token_hex(4)
        key = f"tvt.default.{id}.{secrets.token_urlsafe(24)}"
        self._keys[key] = Caller(tenant="default", user=user, role=role, key=id, rights=RIGHTS[role])
        return key

    def caller(self, key: str) -> Caller:
        for known, caller in self._keys.items():
            if hmac.compare_digest(known.encode(), key.encode()):
                return caller
        raise Unauthorised("This key is not known.")

    def trivet(self, caller: Caller) -> Trivet:
        return self._memory

    def check(self) -> None:
        self._memory.stats()

    def close(self) -> None:
        self._memory.close()
