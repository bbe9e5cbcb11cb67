"""Lets msgspec learn each type in one thread before any thread uses it.

msgspec learns a type when it is first decoded, and two threads that begin with the same one at the same time crash the
process (0.22: the one uses what the other has not filled in yet).
"""

from __future__ import annotations

import threading
from typing import TypeVar

import msgspec

T = TypeVar("T")

_learnt: set[object] = set()
_learning = threading.Lock()


def known_type(kind: type[T]) -> type[T]:
    """The type itself, once msgspec knows it and all that it is made of."""
    if kind not in _learnt:
        with _learning:
            msgspec.json.Decoder(kind)
            _learnt.add(kind)
    return kind
