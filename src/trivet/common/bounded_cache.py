"""The one cache of the package: bounded in bytes that count its own overhead, so that no caller can make it grow.

A bound on the number of entries is none where a caller chooses how long an entry is, and a bound on what entries hold
is none where they may hold nothing: a million words that no memory holds are a million empty lists, and 400 MB.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from functools import wraps
from typing import Any, Generic, TypeVar, cast

# What an entry costs beside its key and value: its place in a dictionary, up to two thirds of which are free.
ENTRY_BYTES = 110
# What the garbage collector keeps beside each object that can hold others; sys.getsizeof leaves it out of some.
STRUCT_BYTES = 32
# An array keeps its shape and type beside its numbers.
ARRAY_BYTES = 160

KIB, MIB = 2**10, 2**20
_PLAIN = frozenset((str, bytes, int, float, bool, datetime, type(None)))

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
F = TypeVar("F", bound=Callable[..., Any])


def size_of(value: Any) -> int:
    """About how many bytes a value takes, with all that it holds: texts, numbers, arrays, structs, collections of them.

    What two values share is counted for both: the sum is never too low.
    """
    if type(value) in _PLAIN:  # by far the most
        return sys.getsizeof(value)
    numbers = getattr(value, "nbytes", None)
    if numbers is not None:
        return ARRAY_BYTES + int(numbers)
    if isinstance(value, Mapping):
        return sys.getsizeof(value) + sum(
            size_of(key) + size_of(held) for key, held in value.items()
        )
    if isinstance(value, tuple | list | set | frozenset):
        # The terms of a text, mostly: a set of their types is made in a tenth of the time that a call for each takes.
        measure = sys.getsizeof if _PLAIN.issuperset(map(type, value)) else size_of
        return sys.getsizeof(value) + sum(map(measure, value))
    fields = getattr(value, "__struct_fields__", None) or getattr(
        value, "__dataclass_fields__", None
    )
    if fields is not None:
        return (
            sys.getsizeof(value)
            + STRUCT_BYTES
            + sum(size_of(getattr(value, name)) for name in fields)
        )
    return sys.getsizeof(value)


class BoundedCache(Generic[K, V]):
    """Keeps what was used lately, within so many bytes. Threads may share it, and a hit takes no lock.

    Entries are in two generations, each within half of the bound. When the younger is full, the older goes as a whole
    and the younger takes its place; what is found in the older is put into the younger again. So the most that is kept
    is the bound, or one entry larger than half of it in each generation. A value must not grow after it was put in.
    """

    def __init__(self, most_bytes: int, size: Callable[[V], int] = size_of) -> None:
        self.most_bytes = most_bytes
        self._size = size
        self._younger: dict[K, V] = {}
        self._older: dict[K, V] = {}
        self._bytes = self._older_bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._younger.keys() | self._older.keys())

    @property
    def bytes(self) -> int:
        """An entry that is in both generations counts twice: the sum is never too low."""
        return self._bytes + self._older_bytes

    def get(self, key: K) -> V | None:
        found = self._younger.get(key)
        if found is None and (found := self._older.get(key)) is not None:
            self.put(key, found)
        return found

    def put(self, key: K, value: V) -> None:
        size = ENTRY_BYTES + size_of(key)
        with self._lock:
            previous = self._younger.pop(key, None)
            if previous is not None:
                self._bytes -= size + self._size(previous)
            size += self._size(value)
            if self._younger and self._bytes + size > self.most_bytes // 2:
                self._older, self._older_bytes = self._younger, self._bytes
                self._younger, self._bytes = {}, 0
            self._younger[key] = value
            self._bytes += size

    def drop(self, key: K) -> None:
        """In the older generation its bytes stay counted until that goes."""
        with self._lock:
            self._older.pop(key, None)
            dropped = self._younger.pop(key, None)
            if dropped is not None:
                self._bytes -= ENTRY_BYTES + size_of(key) + self._size(dropped)

    def clear(self) -> None:
        with self._lock:
            self._younger, self._older = {}, {}
            self._bytes = self._older_bytes = 0


def cached(most_bytes: int, size: Callable[[Any], int] = size_of) -> Callable[[F], F]:
    """For a function of texts, as functools.lru_cache is, but bounded in bytes. Its result must never be None."""

    def decorate(function: F) -> F:
        kept: BoundedCache[Any, Any] = BoundedCache(most_bytes, size)

        @wraps(function)
        def call(*arguments: Any) -> Any:
            found = kept.get(arguments)
            if found is None:
                found = function(*arguments)
                kept.put(arguments, found)
            return found

        call.cache = kept  # type: ignore[attr-defined]
        return cast(F, call)

    return decorate
