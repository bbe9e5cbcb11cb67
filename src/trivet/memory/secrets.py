"""Secrets on purpose: reading them, on the record, and sealing them under a new key."""

from __future__ import annotations

import logging
from collections.abc import Collection

from trivet import contract
from trivet.errors import Forbidden, SecretError
from trivet.ids import check_id
from trivet.memory.engine import Engine
from trivet.secrets.keys import Key
from trivet.secrets.seal import reseal
from trivet.types import AuditEntry, Memory, Rotated

logger = logging.getLogger("trivet.memory")

# Sealed anew in one transaction; after a crash, what is left is found by its old key.
RESEALED_AT_ONCE = 200


def reveal(engine: Engine, request: contract.RevealRequest) -> Memory:
    """A memory in full. The audit record is written first, so no secret is read without a trace."""
    memory = engine.store.memories.get(check_id(request.id))
    if engine.viewer not in (None, memory.owner):
        raise Forbidden(f"Memory {memory.id} belongs to {memory.owner}, who alone can reveal it.")
    held = engine.store.secrets.of(memory.id)
    kinds = ", ".join(sorted({sealed.kind for sealed in held})) or "no secrets"
    engine.store.audit.note("reveal", memory.id, f"revision {memory.revision}: {kinds}")
    return engine.guard.revealed(memory, lambda: engine.store.secrets.of(memory.id))


def rotate(engine: Engine, drop_old: bool = False, drop: Collection[str] = ()) -> Rotated:
    """Seals everything with a new key, while others write. Old keys stay until told otherwise: backups need them.

    First the older keys are retired, so that nothing that they sealed is written any longer; then all that is there is
    sealed anew; then this store lets go of them. One that was interrupted goes on with the key that it had made.
    """
    keys, secrets = engine.guard.keys, engine.store.secrets
    key, resumed = _key_to_use(engine)
    older = keys.before(key.id)
    secrets.retire(older, key.id)
    resealed = 0
    while waiting := secrets.not_under(key.id, RESEALED_AT_ONCE):
        done = [(id, reseal(keys, key, id, sealed)) for id, sealed in waiting]
        secrets.reseal(done)
        resealed += len(done)
    gone = keys.let_go(older, drop_old, set(drop) & set(older))
    engine.store.audit.note("rotate", None, f"{resealed} secrets under key {key.id}, {gone.dropped} old keys dropped")
    return Rotated(key=key.id, resealed=resealed, dropped=gone.dropped, resumed=resumed, kept=gone.kept)


def _key_to_use(engine: Engine) -> tuple[Key, bool]:
    """The current key where a rotation, of this store or of one beside it, made it and not all is sealed with it."""
    key = engine.guard.keys.current()
    if engine.store.secrets.not_under(key.id, 1) and not engine.store.secrets.is_retired(key.id):
        return key, True
    return engine.guard.keys.add(), False


def note_keys(engine: Engine) -> None:
    """Notes this store as a user of every key that sealed something in it: for one that came by a copy."""
    for key in engine.store.secrets.keys_in_use():
        try:
            engine.guard.keys.get(key)
        except SecretError as error:  # `doctor` tells of a key that is gone; the copy is whole all the same
            logger.warning("%s", error)


def audit(engine: Engine, request: contract.AuditRequest) -> tuple[AuditEntry, ...]:
    """The owner and admins see the acts of all users; other callers their own."""
    caller = engine.caller
    if caller is None or "admin" not in caller.rights:
        return engine.store.audit.noted(request.limit, engine.viewer)
    return engine.store.audit.noted(request.limit)
