"""Writes of sealed secrets beside a rotation of keys: what was sealed with a key that is retired is sealed anew.

The store refuses it before it writes anything, so the second attempt may be in the same transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from trivet.errors import RetiredKey
from trivet.memory.engine import Engine
from trivet.secrets.seal import reseal
from trivet.store.records import Added, Entry

T = TypeVar("T")


def add_entries(engine: Engine, entries: Sequence[Entry]) -> list[Added]:
    return write_sealed(engine, entries, engine.store.memories.add_many)


def write_sealed(engine: Engine, entries: Sequence[Entry], write: Callable[[Sequence[Entry]], T]) -> T:
    """The key that sealed the entries is still in this process's memory, also where it is dropped already."""
    try:
        return write(entries)
    except RetiredKey:
        return write([_sealed_anew(engine, entry) for entry in entries])


def _sealed_anew(engine: Engine, entry: Entry) -> Entry:
    if not entry.secrets:
        return entry
    keys = engine.guard.keys
    key = keys.current()
    secrets = tuple(reseal(keys, key, entry.memory.id, sealed) for sealed in entry.secrets)
    return msgspec.structs.replace(entry, secrets=secrets)
