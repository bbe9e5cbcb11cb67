"""Who may learn from an answer what is sealed in a memory: its owner, with the right to reveal. Guesses are limited.

A caller could send a memory again with a guess in place of a placeholder, and see from the answer, or from the name of
the new placeholder, whether the guess was right. So what another user sends is never compared with what is sealed. What
the owner sends is, since a retry must be recognised; with a key that does not allow to reveal, wrong ones are counted.
"""

from __future__ import annotations

from datetime import timedelta

from trivet.clock import moment, now, stamp
from trivet.errors import TooMany
from trivet.memory.engine import Engine
from trivet.types import Memory

ACT = "secret for a known memory"
# Somebody who mistakes an id does it a few times; who guesses a number of four digits needs thousands.
MOST_ATTEMPTS = 20
WITHIN = timedelta(hours=1)


def may_reveal(engine: Engine, owner: str) -> bool:
    caller = engine.caller
    return caller is None or (caller.user == owner and "reveal" in caller.rights)


def known_memory(engine: Engine, id: str) -> Memory | None:
    """The memory with this id that a user of a server sees; the owner of the store has nothing to guess."""
    return None if engine.viewer is None else engine.store.memories.get_many([id]).get(id)


def check_attempts(engine: Engine, held: Memory) -> None:
    """Before a secret that came for this memory is compared: who guessed too often learns nothing of it."""
    if may_reveal(engine, held.owner):
        return
    since = stamp(moment(now()) - WITHIN)
    if engine.store.audit.count(ACT, since) >= MOST_ATTEMPTS:
        raise TooMany(
            f"Secrets came from you under ids of memories that hold others {MOST_ATTEMPTS} times within an hour. "
            "Nothing was stored; give a new id, or none, or wait."
        )


def note_attempt(engine: Engine, held: Memory) -> None:
    """Puts on the record that a secret came for this memory which is not sealed there, or may not be compared."""
    if not may_reveal(engine, held.owner):
        engine.store.audit.note(ACT, held.id, f"of {held.owner}, not stored")
