"""Secrets on purpose: reading them, on the record, and sealing them under a new key."""

from __future__ import annotations

from trivet import contract
from trivet.errors import Forbidden
from trivet.ids import check_id
from trivet.memory.engine import Engine
from trivet.secrets.seal import reseal
from trivet.types import AuditEntry, Memory, Rotated

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
    return engine.guard.revealed(memory, held)


def rotate(engine: Engine, drop_old: bool) -> Rotated:
    """Makes a new key and seals everything with it. Old keys stay until told otherwise, since backups need them."""
    key = engine.guard.keys.add()
    resealed = 0
    while waiting := engine.store.secrets.not_under(key.id, RESEALED_AT_ONCE):
        done = [(id, reseal(engine.guard.keys, key, id, sealed)) for id, sealed in waiting]
        engine.store.secrets.reseal(done)
        resealed += len(done)
    dropped = engine.guard.keys.drop_old() if drop_old else 0
    engine.store.audit.note("rotate", None, f"{resealed} secrets under key {key.id}, {dropped} old keys dropped")
    return Rotated(key=key.id, resealed=resealed, dropped=dropped)


def audit(engine: Engine, request: contract.AuditRequest) -> tuple[AuditEntry, ...]:
    """The owner and admins see the acts of all users; other callers their own."""
    caller = engine.caller
    if caller is None or "admin" not in caller.rights:
        return engine.store.audit.noted(request.limit, engine.viewer)
    return engine.store.audit.noted(request.limit)
