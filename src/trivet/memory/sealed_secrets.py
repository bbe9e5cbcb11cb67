"""Secrets on purpose: reading them, on the record, and sealing them under a new key.

Who may learn from an answer what is sealed in a memory: its owner, with the right to reveal. Guesses are limited.

A caller could send a memory again with a guess in place of a placeholder, and see from the answer, or from the name of
the new placeholder, whether the guess was right. So what another user sends is never compared with what is sealed. What
the owner sends is, since a retry must be recognised; with a key that does not allow to reveal, wrong ones are counted.

Writes of sealed secrets beside a rotation of keys: what was sealed with a key that is retired is sealed anew.

The store refuses it before it writes anything, so the second attempt may be in the same transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from typing import TypeVar

import msgspec

from trivet import contract
from trivet.common.clock import moment, now, stamp
from trivet.common.ids import check_id
from trivet.errors import Forbidden, RetiredKey, SecretError, TooMany
from trivet.memory.engine import Engine
from trivet.secrets.guard import reseal
from trivet.secrets.key_ring import Key
from trivet.store.records import AddResult, Entry
from trivet.types import AuditEntry, Memory, Rotated

logger = logging.getLogger("trivet.memory")

# Sealed anew in one transaction; after a crash, what is left is found by its old key.
RESEAL_BATCH = 200


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
    while waiting := secrets.not_under(key.id, RESEAL_BATCH):
        done = [(id, reseal(keys, key, id, sealed)) for id, sealed in waiting]
        secrets.reseal(done)
        resealed += len(done)
    gone = keys.release(older, drop_old, set(drop) & set(older))
    engine.store.audit.note(
        "rotate", None, f"{resealed} secrets under key {key.id}, {gone.dropped} old keys dropped"
    )
    return Rotated(
        key=key.id, resealed=resealed, dropped=gone.dropped, resumed=resumed, kept=gone.kept
    )


def _key_to_use(engine: Engine) -> tuple[Key, bool]:
    """The current key where a rotation, of this store or of one beside it, made it and not all is sealed with it."""
    key = engine.guard.keys.current()
    if engine.store.secrets.not_under(key.id, 1) and not engine.store.secrets.is_retired(key.id):
        return key, True
    return engine.guard.keys.add(), False


def register_keys(engine: Engine) -> None:
    """Notes this store as a user of every key that sealed something in it: for one that came by a copy."""
    for key in engine.store.secrets.keys_in_use():
        try:
            engine.guard.keys.get(key)
        except (
            SecretError
        ) as error:  # `doctor` tells of a key that is gone; the copy is whole all the same
            logger.warning("%s", error)


def audit(engine: Engine, request: contract.AuditRequest) -> tuple[AuditEntry, ...]:
    """The owner and admins see the acts of all users; other callers their own."""
    caller = engine.caller
    if caller is None or "admin" not in caller.rights:
        return engine.store.audit.noted(request.limit, engine.viewer)
    return engine.store.audit.noted(request.limit)


REJECTED_GUESS_ACT = "secret for a known memory"
# Somebody who mistakes an id does it a few times; who guesses a number of four digits needs thousands.
MAX_GUESSES = 20
ATTEMPT_WINDOW = timedelta(hours=1)


def may_reveal(engine: Engine, owner: str) -> bool:
    caller = engine.caller
    return caller is None or (caller.user == owner and "reveal" in caller.rights)


def visible_memory(engine: Engine, id: str) -> Memory | None:
    """The memory with this id that a user of a server sees; the owner of the store has nothing to guess."""
    return None if engine.viewer is None else engine.store.memories.get_many([id]).get(id)


def check_guess_limit(engine: Engine, held: Memory) -> None:
    """Before a secret that came for this memory is compared: who guessed too often learns nothing of it."""
    if may_reveal(engine, held.owner):
        return
    since = stamp(moment(now()) - ATTEMPT_WINDOW)
    if engine.store.audit.count(REJECTED_GUESS_ACT, since) >= MAX_GUESSES:
        raise TooMany(
            f"Secrets came from you under ids of memories that hold others {MAX_GUESSES} times within an hour. "
            "Nothing was stored; give a new id, or none, or wait."
        )


def record_guess(engine: Engine, held: Memory) -> None:
    """Puts on the record that a secret came for this memory which is not sealed there, or may not be compared."""
    if not may_reveal(engine, held.owner):
        engine.store.audit.note(REJECTED_GUESS_ACT, held.id, f"of {held.owner}, not stored")


T = TypeVar("T")


def add_entries(engine: Engine, entries: Sequence[Entry]) -> list[AddResult]:
    return write_with_current_key(engine, entries, engine.store.memories.add_many)


def write_with_current_key(
    engine: Engine, entries: Sequence[Entry], write: Callable[[Sequence[Entry]], T]
) -> T:
    """The key that sealed the entries is still in this process's memory, also where it is dropped already."""
    try:
        return write(entries)
    except RetiredKey:
        return write([_reseal_entry(engine, entry) for entry in entries])


def _reseal_entry(engine: Engine, entry: Entry) -> Entry:
    if not entry.secrets:
        return entry
    keys = engine.guard.keys
    key = keys.current()
    secrets = tuple(reseal(keys, key, entry.memory.id, sealed) for sealed in entry.secrets)
    return msgspec.structs.replace(entry, secrets=secrets)
