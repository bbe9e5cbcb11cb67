"""Revealing secrets on the record, rotating their keys, and limiting guesses at them.

A caller could resend a memory with a guess in place of a placeholder. So secrets of other users are
never compared, and wrong guesses at the owner's are limited if the owner's key cannot reveal.
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

# Secrets per transaction. After a crash, the next run finds the rest by its old key.
RESEAL_BATCH = 200


def reveal(engine: Engine, request: contract.RevealRequest) -> Memory:
    memory = engine.store.memories.get(check_id(request.id))
    if engine.viewer not in (None, memory.owner):
        raise Forbidden(
            f"Memory {memory.id} belongs to {memory.owner}, and only they can reveal it."
        )
    held = engine.store.secrets.of(memory.id)
    kinds = ", ".join(sorted({sealed.kind for sealed in held})) or "no secrets"
    engine.store.audit.note("reveal", memory.id, f"revision {memory.revision}: {kinds}")
    return engine.guard.revealed(memory, lambda: engine.store.secrets.of(memory.id))


def rotate(engine: Engine, drop_old: bool = False, drop: Collection[str] = ()) -> Rotated:
    """Seal everything with a new key, while other processes write.

    Older keys are first retired, so that nothing new is sealed with them; backups may still need
    them. An interrupted rotation resumes with its key.
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
    key = engine.guard.keys.current()
    if engine.store.secrets.not_under(key.id, 1) and not engine.store.secrets.is_retired(key.id):
        return key, True
    return engine.guard.keys.add(), False


def register_keys(engine: Engine) -> None:
    """Register this store as a user of its keys."""
    for key in engine.store.secrets.keys_in_use():
        try:
            engine.guard.keys.get(key)
        except SecretError as error:  # `doctor` reports a missing key; the copy is still complete
            logger.warning("%s", error)


def audit(engine: Engine, request: contract.AuditRequest) -> tuple[AuditEntry, ...]:
    """Return all entries to the owner and admins, else the caller's."""
    caller = engine.caller
    if caller is None or "admin" not in caller.rights:
        return engine.store.audit.noted(request.limit, engine.viewer)
    return engine.store.audit.noted(request.limit)


REJECTED_GUESS_ACT = "secret for a known memory"
# A mistaken id causes a few wrong guesses; guessing four digits takes thousands.
MAX_GUESSES = 20
ATTEMPT_WINDOW = timedelta(hours=1)


def may_reveal(engine: Engine, owner: str) -> bool:
    caller = engine.caller
    return caller is None or (caller.user == owner and "reveal" in caller.rights)


def visible_memory(engine: Engine, id: str) -> Memory | None:
    """Return the memory if a server's user can see it; None for the owner."""
    return None if engine.viewer is None else engine.store.memories.get_many([id]).get(id)


def check_guess_limit(engine: Engine, held: Memory) -> None:
    if may_reveal(engine, held.owner):
        return
    since = stamp(moment(now()) - ATTEMPT_WINDOW)
    if engine.store.audit.count(REJECTED_GUESS_ACT, since) >= MAX_GUESSES:
        raise TooMany(
            f"You sent {MAX_GUESSES} secrets within an hour under ids of memories that hold "
            "other secrets. "
            "Nothing was stored. Use a new id, omit it, or wait."
        )


def record_guess(engine: Engine, held: Memory) -> None:
    """Record a secret that this memory does not hold or may not compare."""
    if not may_reveal(engine, held.owner):
        engine.store.audit.note(REJECTED_GUESS_ACT, held.id, f"of {held.owner}, not stored")


T = TypeVar("T")


def add_entries(engine: Engine, entries: Sequence[Entry]) -> list[AddResult]:
    return write_with_current_key(engine, entries, engine.store.memories.add_many)


def write_with_current_key(
    engine: Engine, entries: Sequence[Entry], write: Callable[[Sequence[Entry]], T]
) -> T:
    """Write, resealing once if the store refuses a key retired meanwhile.

    A dropped key still opens, because it is in this process's memory.
    """
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
