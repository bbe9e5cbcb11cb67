"""Users and keys of a server, as its owner and the admins of a tenant manage them.

The owner has the store and may do everything. An admin, who comes over HTTP, is kept from two things. They give no
right that their own key lacks. And they make no key by which they could read what is private to another: only one for
themselves, or the first of a user who has stored nothing yet, to be handed over. Whose key is lost gets another from
the owner.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from trivet.clock import moment, now, stamp
from trivet.contract import (
    AddKey,
    AddUser,
    ListKeys,
    ListUsers,
    RemoveUser,
    RevokeKey,
    SetRole,
)
from trivet.errors import Conflict, Forbidden, InvalidInput, NotFound
from trivet.memory.accounts import RIGHTS, make_key
from trivet.memory.engine import Engine
from trivet.types import Caller, Key, NewKey, Right, User


def users(engine: Engine, request: ListUsers) -> tuple[User, ...]:
    return engine.store.accounts.users()


def add_user(engine: Engine, request: AddUser) -> User:
    return engine.store.accounts.add_user(request.name, request.role)


def set_role(engine: Engine, request: SetRole) -> User:
    _not_oneself(engine, request.name)
    engine.store.accounts.set_role(request.name, request.role)
    return engine.store.accounts.user(request.name)


def remove_user(engine: Engine, request: RemoveUser) -> None:
    _not_oneself(engine, request.name)
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
        rights = _within(engine.caller, rights or _usual(engine, request.user), asked=bool(request.rights))
    expires = stamp(moment(now()) + timedelta(days=request.days)) if request.days else None
    made = make_key(engine.store, engine.settings.tenant, request.user, rights, request.label, expires)
    return NewKey(**msgspec.structs.asdict(made.key), key=made.text)


def revoke_key(engine: Engine, request: RevokeKey) -> None:
    if engine.caller is not None and request.id == engine.caller.key:
        _not_the_last(engine, engine.caller)
    engine.store.accounts.revoke(request.id)


def _usual(engine: Engine, user: str) -> tuple[Right, ...]:
    return tuple(right for right in RIGHTS[engine.store.accounts.user(user).role] if right != "reveal")


def _within(caller: Caller, rights: tuple[Right, ...], asked: bool) -> tuple[Right, ...]:
    beyond = sorted(set(rights) - caller.rights)
    if beyond and asked:
        raise Forbidden(f"Your own key does not allow {', '.join(beyond)}, so it gives none of it. Nothing was made.")
    return tuple(right for right in rights if right in caller.rights)


def _check_private(engine: Engine, caller: Caller, user: str) -> None:
    accounts = engine.store.accounts
    if user == caller.user:
        return
    if not accounts.has(user):
        raise NotFound(f"There is no user {user}. Add them first.")
    if accounts.has_stored(user) or user in {key.user for key in keys(engine, ListKeys())}:
        raise Forbidden(
            f"{user} is not new, and with a key of theirs you could read what is private to them. "
            f"Whoever has the server's machine makes it: `trivet key add {user}`. Nothing was made."
        )


def _not_oneself(engine: Engine, user: str) -> None:
    if engine.caller is not None and engine.caller.user == user:
        raise InvalidInput("Another admin changes or removes you, so that one is left. Nothing was changed.")


def _not_the_last(engine: Engine, caller: Caller) -> None:
    """A key that expires, such as the page's, may go: nobody counted on it for long."""
    found = engine.store.accounts.keys()
    mine = next((key for key in found if key.id == caller.key), None)
    if mine is None or mine.expires_at is not None:
        return
    admins = {user.name for user in engine.store.accounts.users() if user.role == "admin"}
    others = (key for key in found if key.id != mine.id and key.user in admins and "admin" in key.rights)
    if not any(key.revoked_at is None and _lasts(key) for key in others):
        raise Conflict("This is the last key of an admin. Make another first. Nothing was changed.")


def _lasts(key: Key) -> bool:
    return key.expires_at is None or key.expires_at > moment(now())
