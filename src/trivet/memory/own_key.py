"""A caller of a server and the key they came with: whose it is, and its end."""

from __future__ import annotations

from trivet.contract import OwnKey, SignOut
from trivet.errors import InvalidInput
from trivet.memory.engine import Engine
from trivet.types import Key

_NO_KEY = "This is your own store: nobody needs a key for it. Only a server asks for one."


def own_key(engine: Engine, request: OwnKey) -> Key:
    """With the rights that the user's role still allows."""
    caller = engine.caller
    known = engine.store.accounts.key(caller.key) if caller else None
    if caller is None or known is None:
        raise InvalidInput(_NO_KEY)
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
        raise InvalidInput(_NO_KEY)
    engine.store.accounts.revoke(engine.caller.key)
