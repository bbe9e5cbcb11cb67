"""API keys of a server's users: `tvt.<tenant>.<key id>.<secret>`, shown once and kept as a hash.

The secret has 256 random bits, so one round of SHA-256 is as good as any slow hash: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from trivet.clock import moment, moment_or_none, now, parse_time
from trivet.errors import InvalidInput, Unauthorised
from trivet.memory.tenants import is_tenant
from trivet.store.records import KnownKey
from trivet.types import Caller, Key, Right, Role

if TYPE_CHECKING:
    from trivet.store import Store

PREFIX = "tvt"
# What a user of a role can be given. What no key has unless it was asked for is `reveal`.
RIGHTS: Mapping[Role, tuple[Right, ...]] = {
    "reader": ("read", "reveal"),
    "writer": ("read", "write", "share", "reveal"),
    "admin": ("read", "write", "share", "reveal", "admin"),
}
_NO_KEY = "This needs the key of a user: `Authorization: Bearer tvt...`. `trivet key add USER` makes one."
_BAD_KEY = "This key is not known, has expired or was revoked. `trivet key add USER` makes a new one."


class NewKey(NamedTuple):
    key: Key
    text: str


def make_key(
    store: Store,
    tenant: str,
    user: str,
    rights: Sequence[Right] | None = None,
    label: str = "",
    expires_at: str | None = None,
) -> NewKey:
    given = _rights(store.accounts.user(user).role, rights)
    expires = parse_time(expires_at, "expires_at") if expires_at else None
    if expires is not None and expires <= now():
        raise InvalidInput("expires_at: this has passed already. Nothing was made.")
    secret = secrets.token_urlsafe(32)
    key = Key(
        id=secrets.token_hex(6),
        user=user,
        rights=given,
        label=label[:200],
        created_at=moment(now()),
        expires_at=moment_or_none(expires),
    )
    store.accounts.add_key(key, _hash(secret))
    return NewKey(key, f"{PREFIX}.{tenant}.{key.id}.{secret}")


def tenant_of(text: str) -> str | None:
    """The tenant a key names, whether or not it is a good one."""
    parts = text.split(".")
    return parts[1] if len(parts) == 4 and parts[0] == PREFIX and is_tenant(parts[1]) else None


def caller_of(store: Store, tenant: str, text: str, is_here: bool = True) -> Caller:
    """Who comes with this key. What is wrong with a bad one is not told, and takes as long as a good one to find."""
    if not text:
        raise Unauthorised(_NO_KEY)
    parts = text.split(".")
    id, secret = (parts[2], parts[3]) if len(parts) == 4 else ("", "")
    known = store.accounts.key(id[:64])
    hash = _hash(secret)
    is_right = hmac.compare_digest(hash, known.hash if known else _hash("no key"))
    if known is None or not is_right or not is_here:
        raise Unauthorised(_BAD_KEY)
    return _caller(tenant, _in_force(known))


def check_still(store: Store, caller: Caller) -> None:
    """For work that goes on after its key was looked at: refused once that is revoked, expired or allows less."""
    known = store.accounts.key(caller.key)
    if known is None or not caller.rights <= _caller(caller.tenant, _in_force(known)).rights:
        raise Unauthorised(_BAD_KEY)


def _in_force(known: KnownKey) -> KnownKey:
    key = known.key
    if key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= moment(now())):
        raise Unauthorised(_BAD_KEY)
    return known


def _caller(tenant: str, known: KnownKey) -> Caller:
    """The role may have become smaller since the key was made."""
    rights = frozenset(known.key.rights) & frozenset(RIGHTS[known.role])
    return Caller(tenant=tenant, user=known.key.user, role=known.role, key=known.key.id, rights=rights)


def _rights(role: Role, wanted: Sequence[Right] | None) -> tuple[Right, ...]:
    most = RIGHTS[role]
    if wanted is None:
        return tuple(right for right in most if right != "reveal")
    beyond = sorted(set(wanted) - set(most))
    if beyond:
        raise InvalidInput(
            f"rights: a {role} cannot have {', '.join(beyond)}; {', '.join(most)} are possible. Nothing was made."
        )
    return tuple(right for right in most if right in wanted)


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
