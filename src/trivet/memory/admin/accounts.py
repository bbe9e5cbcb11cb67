"""Users, API keys and shares of a server.

An admin, who comes over HTTP, can give only rights of their own key, and can make keys only for
themselves or for a user without memories: with another they could read private memories. A key is
`tvt.<tenant>.<key id>.<secret>`; its secret has 256 random bits, so SHA-256 is as safe as a slow
password hash.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from trivet.common.clock import moment, moment_or_none, now, parse_time, stamp
from trivet.common.ids import check_id
from trivet.contract import (
    AddKey,
    AddUser,
    ListKeys,
    ListUsers,
    OwnKey,
    RemoveUser,
    RevokeKey,
    SetRole,
    ShareRequest,
    SharesRequest,
    SignOut,
    UnshareRequest,
)
from trivet.errors import Conflict, Forbidden, InvalidInput, NotFound, Unauthorised
from trivet.memory.engine import Engine
from trivet.memory.open_store import is_tenant
from trivet.store.records import StoredKey
from trivet.types import LOCAL, Caller, Key, NewKey, Right, Role, Share, User

if TYPE_CHECKING:
    from trivet.store import Store


def users(engine: Engine, request: ListUsers) -> tuple[User, ...]:
    return engine.store.accounts.users()


def add_user(engine: Engine, request: AddUser) -> User:
    return engine.store.accounts.add_user(request.name, request.role)


def set_role(engine: Engine, request: SetRole) -> User:
    _forbid_self(engine, request.name)
    engine.store.accounts.set_role(request.name, request.role)
    return engine.store.accounts.user(request.name)


def remove_user(engine: Engine, request: RemoveUser) -> None:
    _forbid_self(engine, request.name)
    engine.store.accounts.remove_user(request.name)


def keys(engine: Engine, request: ListKeys) -> tuple[Key, ...]:
    caller = engine.caller
    found = engine.store.accounts.keys()
    if caller is None or "admin" in caller.rights:
        return found
    return tuple(key for key in found if key.user == caller.user)


def add_key(engine: Engine, request: AddKey) -> NewKey:
    rights = tuple(request.rights) or None
    if engine.caller is not None:
        _check_private(engine, engine.caller, request.user)
        rights = _limited_to_own(
            engine.caller,
            rights or _default_rights(engine, request.user),
            asked=bool(request.rights),
        )
    expires = stamp(moment(now()) + timedelta(days=request.days)) if request.days else None
    made = make_key(
        engine.store, engine.settings.tenant, request.user, rights, request.label, expires
    )
    return NewKey(**msgspec.structs.asdict(made.key), key=made.text)


def revoke_key(engine: Engine, request: RevokeKey) -> None:
    if engine.caller is not None and request.id == engine.caller.key:
        _keep_last_admin_key(engine, engine.caller)
    engine.store.accounts.revoke(request.id)


def _default_rights(engine: Engine, user: str) -> tuple[Right, ...]:
    return tuple(
        right for right in RIGHTS[engine.store.accounts.user(user).role] if right != "reveal"
    )


def _limited_to_own(caller: Caller, rights: tuple[Right, ...], asked: bool) -> tuple[Right, ...]:
    beyond = sorted(set(rights) - caller.rights)
    if beyond and asked:
        raise Forbidden(
            f"Your own key lacks these rights, so it cannot give them: {', '.join(beyond)}. "
            "Nothing was made."
        )
    return tuple(right for right in rights if right in caller.rights)


def _check_private(engine: Engine, caller: Caller, user: str) -> None:
    accounts = engine.store.accounts
    if user == caller.user:
        return
    if not accounts.has(user):
        raise NotFound(f"There is no user {user}. Add them first.")
    if accounts.has_stored(user) or user in {key.user for key in keys(engine, ListKeys())}:
        raise Forbidden(
            f"{user} is not new, and with their key you could read their private memories. "
            f"The owner can make one on the server: `trivet key add {user}`. Nothing was made."
        )


def _forbid_self(engine: Engine, user: str) -> None:
    if engine.caller is not None and engine.caller.user == user:
        raise InvalidInput(
            "Only another admin can change or remove you, so that one is left. Nothing was changed."
        )


def _keep_last_admin_key(engine: Engine, caller: Caller) -> None:
    """Raise Conflict for the last admin key, unless it expires."""
    found = engine.store.accounts.keys()
    mine = next((key for key in found if key.id == caller.key), None)
    if mine is None or mine.expires_at is not None:
        return
    admins = {user.name for user in engine.store.accounts.users() if user.role == "admin"}
    others = (
        key for key in found if key.id != mine.id and key.user in admins and "admin" in key.rights
    )
    if not any(key.revoked_at is None and _is_unexpired(key) for key in others):
        raise Conflict("This is the last key of an admin. Make another first. Nothing was changed.")


def _is_unexpired(key: Key) -> bool:
    return key.expires_at is None or key.expires_at > moment(now())


_OWN_STORE_HAS_NO_KEYS = "This is your own store, which needs no key. Only a server asks for one."


def own_key(engine: Engine, request: OwnKey) -> Key:
    caller = engine.caller
    known = engine.store.accounts.key(caller.key) if caller else None
    if caller is None or known is None:
        raise InvalidInput(_OWN_STORE_HAS_NO_KEYS)
    rights = tuple(right for right in known.key.rights if right in caller.rights)
    return Key(
        id=known.key.id,
        user=known.key.user,
        rights=rights,
        label=known.key.label,
        created_at=known.key.created_at,
        expires_at=known.key.expires_at,
    )


def sign_out(engine: Engine, request: SignOut) -> None:
    if engine.caller is None:
        raise InvalidInput(_OWN_STORE_HAS_NO_KEYS)
    engine.store.accounts.revoke(engine.caller.key)


EVERYONE = "*"


def share(engine: Engine, request: ShareRequest) -> Share:
    _check_id_or_tag(request)
    if request.user == (engine.viewer or LOCAL):
        raise InvalidInput("user: you cannot share with yourself. Name another user.")
    # A laptop does not know the users; its server refuses unknown ones.
    if (
        request.user != EVERYONE
        and not engine.follows
        and not engine.store.accounts.has(request.user)
    ):
        raise NotFound(f"There is no user {request.user} to share with. Nothing was changed.")
    if request.tag is not None and engine.guard.spans(request.tag):
        raise InvalidInput(
            "tag: it looks like a secret, and shares are recorded in plain text. Nothing was "
            "shared."
        )
    if request.id is not None:
        return engine.store.shares.share_memory(
            check_id(request.id), request.user, request.permission
        )
    return engine.store.shares.share_tag(str(request.tag), request.user, request.permission)


def unshare(engine: Engine, request: UnshareRequest) -> None:
    _check_id_or_tag(request)
    if request.id is not None:
        engine.store.shares.unshare_memory(check_id(request.id), request.user)
    else:
        engine.store.shares.unshare_tag(str(request.tag), request.user)


def shares(engine: Engine, request: SharesRequest) -> tuple[Share, ...]:
    return engine.store.shares.all()


def _check_id_or_tag(request: ShareRequest | UnshareRequest) -> None:
    if (request.id is None) == (request.tag is None):
        raise InvalidInput("Give either the id of a memory or a tag, not both or neither.")


PREFIX = "tvt"
# The most that a role allows. A key gets `reveal` only on request.
RIGHTS: Mapping[Role, tuple[Right, ...]] = {
    "reader": ("read", "reveal"),
    "writer": ("read", "write", "share", "reveal"),
    "admin": ("read", "write", "share", "reveal", "admin"),
}
_NO_KEY = (
    "This needs the key of a user: `Authorization: Bearer tvt...`. `trivet key add USER` makes one."
)
_BAD_KEY = (
    "This key is not known, has expired or was revoked. `trivet key add USER` makes a new one."
)


class IssuedKey(NamedTuple):
    key: Key
    text: str


def make_key(
    store: Store,
    tenant: str,
    user: str,
    rights: Sequence[Right] | None = None,
    label: str = "",
    expires_at: str | None = None,
) -> IssuedKey:
    given = _rights(store.accounts.user(user).role, rights)
    expires = parse_time(expires_at, "expires_at") if expires_at else None
    if expires is not None and expires <= now():
        raise InvalidInput("expires_at: this time has passed. Nothing was made.")
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
    return IssuedKey(key, f"{PREFIX}.{tenant}.{key.id}.{secret}")


def tenant_in_key(text: str) -> str | None:
    """Return the tenant that a key names, valid or not."""
    parts = text.split(".")
    return parts[1] if len(parts) == 4 and parts[0] == PREFIX and is_tenant(parts[1]) else None


def authenticate(store: Store, tenant: str, text: str, is_here: bool = True) -> Caller:
    """Return the key's user; every bad key raises the same error after the same time."""
    if not text:
        raise Unauthorised(_NO_KEY)
    parts = text.split(".")
    id, secret = (parts[2], parts[3]) if len(parts) == 4 else ("", "")
    known = store.accounts.key(id[:64])
    hash = _hash(secret)
    is_right = hmac.compare_digest(hash, known.hash if known else _hash("no key"))
    if known is None or not is_right or not is_here:
        raise Unauthorised(_BAD_KEY)
    return _caller(tenant, _require_valid(known))


def recheck_caller(store: Store, caller: Caller) -> None:
    """Raise Unauthorised if the key has since been revoked, expired or lost rights."""
    known = store.accounts.key(caller.key)
    if known is None or not caller.rights <= _caller(caller.tenant, _require_valid(known)).rights:
        raise Unauthorised(_BAD_KEY)


def _require_valid(known: StoredKey) -> StoredKey:
    key = known.key
    if key.revoked_at is not None or (
        key.expires_at is not None and key.expires_at <= moment(now())
    ):
        raise Unauthorised(_BAD_KEY)
    return known


def _caller(tenant: str, known: StoredKey) -> Caller:
    # The role may have changed since the key was made.
    rights = frozenset(known.key.rights) & frozenset(RIGHTS[known.role])
    return Caller(
        tenant=tenant, user=known.key.user, role=known.role, key=known.key.id, rights=rights
    )


def _rights(role: Role, wanted: Sequence[Right] | None) -> tuple[Right, ...]:
    most = RIGHTS[role]
    if wanted is None:
        return tuple(right for right in most if right != "reveal")
    beyond = sorted(set(wanted) - set(most))
    if beyond:
        raise InvalidInput(
            f"rights: a {role} cannot have {', '.join(beyond)}. Possible are "
            f"{', '.join(most)}. Nothing was made."
        )
    return tuple(right for right in most if right in wanted)


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
