"""Sealed text under an id that is another user's: never compared with what is sealed there, noted, and limited.

Without this a user with whom a memory is shared could send it again with a guess in place of a placeholder, and learn
from the answer whether the guess was right.
"""

from __future__ import annotations

from datetime import timedelta

from trivet.clock import moment, now, stamp
from trivet.errors import TooMany
from trivet.memory.engine import Engine
from trivet.types import Memory

ACT = "secret for another's memory"
# Somebody who mistakes an id does it a few times; who guesses a number of four digits needs thousands.
MOST_ATTEMPTS = 20
WITHIN = timedelta(hours=1)


def others_memory(engine: Engine, id: str) -> Memory | None:
    """The memory with this id, if the caller sees it and does not own it."""
    if engine.viewer is None:
        return None
    found = engine.store.memories.get_many([id]).get(id)
    return found if found is not None and found.owner != engine.viewer else None


def note_attempt(engine: Engine, memory: Memory) -> None:
    """Puts on the record that the caller sent a secret or a private part under the id of this memory."""
    since = stamp(moment(now()) - WITHIN)
    if engine.store.audit.count(ACT, since) >= MOST_ATTEMPTS:
        raise TooMany(
            f"Secrets came from you under ids of others' memories {MOST_ATTEMPTS} times within an hour. Nothing was "
            "stored; give an id of your own, or none, or wait."
        )
    engine.store.audit.note(ACT, memory.id, f"of {memory.owner}, not stored")
