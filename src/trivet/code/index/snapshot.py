"""A segment as one flat file, mapped instead of read: a new process searches at once, and processes share it.

A file that is cut short or of another version is made anew.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints
from zlib import crc32

import msgspec
import numpy as np

from trivet.atomic_write import atomic_write
from trivet.code.index.segment import Segment

logger = logging.getLogger("trivet.code")

MAGIC = b"TRIVETC1"
# Arrays begin at multiples of this, as numbers of eight bytes must.
ALIGNMENT = 64
HEAD_BYTES = 16


class _Array(msgspec.Struct, frozen=True):
    name: str
    kind: str
    shape: tuple[int, ...]
    at: int


class _Head(msgspec.Struct, frozen=True):
    size: int
    arrays: tuple[_Array, ...]


_head = msgspec.json.Decoder(_Head)


def save(file: Path, segment: Segment) -> None:
    """Written beside and renamed, so that readers have the old one or the whole new one."""
    arrays, at = [], 0
    values = list(_arrays("", segment))
    for name, value in values:
        arrays.append(_Array(name, value.dtype.str, value.shape, at))
        at += -(-value.nbytes // ALIGNMENT) * ALIGNMENT
    head = msgspec.json.encode(_Head(at, tuple(arrays)))
    with atomic_write(file) as stream:
        stream.write(MAGIC + len(head).to_bytes(4, "little") + crc32(head).to_bytes(4, "little") + head)
        stream.write(bytes(-(HEAD_BYTES + len(head)) % ALIGNMENT))
        for _, value in values:
            stream.write(np.ascontiguousarray(value).data)
            stream.write(bytes(-value.nbytes % ALIGNMENT))


def load(file: Path) -> Segment | None:
    """The mapped segment, or None where there is none that can be used."""
    try:
        with file.open("rb") as stream:
            start = stream.read(HEAD_BYTES)
            head_bytes = stream.read(int.from_bytes(start[8:12], "little"))
        if start[:8] != MAGIC or crc32(head_bytes) != int.from_bytes(start[12:16], "little"):
            return None
        head = _head.decode(head_bytes)
        first = -(-(HEAD_BYTES + len(head_bytes)) // ALIGNMENT) * ALIGNMENT
        mapped = np.memmap(file, np.uint8, "r")
        if len(mapped) != first + head.size:
            return None
        parts = {one.name: _part(mapped, first, one) for one in head.arrays}
        segment: Segment = _built(Segment, "", parts)
        return segment
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, msgspec.MsgspecError) as error:
        logger.warning("The snapshot %s cannot be used (%r): it is made anew.", file, error)
        return None


def _part(mapped: Any, first: int, one: _Array) -> Any:
    kind = np.dtype(one.kind)
    start = first + one.at
    return np.asarray(mapped[start : start + prod(one.shape) * kind.itemsize]).view(kind).reshape(one.shape)


def _arrays(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of nested named tuples, each by the path of its field."""
    for name in value._fields:
        part = getattr(value, name)
        if isinstance(part, np.ndarray):
            yield f"{prefix}{name}", part
        else:
            yield from _arrays(f"{prefix}{name}.", part)


def _built(kind: type[NamedTuple], prefix: str, parts: dict[str, Any]) -> Any:
    hints = get_type_hints(kind)
    values = [
        _built(hints[name], f"{prefix}{name}.", parts) if hasattr(hints[name], "_fields") else parts[prefix + name]
        for name in kind._fields
    ]
    return kind(*values)
