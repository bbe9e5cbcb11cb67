"""The package's only cache, bounded in bytes, so that no caller can grow it.

Counting entries is no bound: callers choose their length.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from functools import wraps
from typing import Any, Generic, TypeVar, cast

# A dictionary's cost per entry; up to two thirds of its slots are free.
ENTRY_BYTES = 110
# The garbage collector's cost per container; sys.getsizeof omits it for some.
STRUCT_BYTES = 32
ARRAY_BYTES = 160

KIB, MIB = 2**10, 2**20
_PLAIN = frozenset((str, bytes, int, float, bool, datetime, type(None)))

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
F = TypeVar("F", bound=Callable[..., Any])


def size_of(value: Any) -> int:
    """Return the approximate bytes of a value; shared parts count every time."""
    if type(value) in _PLAIN:  # by far the most common
        return sys.getsizeof(value)
    numbers = getattr(value, "nbytes", None)
    if numbers is not None:
        return ARRAY_BYTES + int(numbers)
    if isinstance(value, Mapping):
        return sys.getsizeof(value) + sum(
            size_of(key) + size_of(held) for key, held in value.items()
        )
    if isinstance(value, tuple | list | set | frozenset):
        # Mostly the terms of a text: building a set of types takes a tenth of a call for each.
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
    """Recently used values within a byte limit; threads share it, and a hit takes no lock.

    Two generations hold half the limit each; a full younger one replaces the older. A value must
    not grow once stored.
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
        """The bytes in use; an entry in both generations counts twice."""
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
    """Cache a function like functools.lru_cache, bounded in bytes; results must not be None."""

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
