"""Arrays in one flat file, mapped instead of read: a new process uses them at once, and processes share one copy.

A file is written beside its place and renamed, never changed. One that is cut short, of another kind or with a damaged
head is not opened. The checksum of each array is in the head; to check them all reads the whole file (`damaged`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

import msgspec
import numpy as np

logger = logging.getLogger("trivet")

# Arrays begin at multiples of this, as numbers of eight bytes must.
ALIGNMENT = 64
KIND_BYTES = 8
HEAD_BYTES = 16

Arrays = Mapping[str, Any]


class _Array(msgspec.Struct, frozen=True):
    name: str
    kind: str
    shape: tuple[int, ...]
    at: int
    checksum: int


class _Head(msgspec.Struct, frozen=True):
    size: int
    arrays: tuple[_Array, ...]
    facts: dict[str, str]


class Mapped(msgspec.Struct, frozen=True):
    """What a file holds. Whoever writes into the arrays writes into memory of their own: the file stays as it is."""

    arrays: dict[str, Any]
    facts: dict[str, str]
    checksums: dict[str, int]

    def damaged(self) -> list[str]:
        """The names of arrays that are not as they were written. Reads them all."""
        return [name for name, array in self.arrays.items() if crc32(_bytes(array)) != self.checksums[name]]


_head = msgspec.json.Decoder(_Head)


def write_arrays(stream: BinaryIO, kind: bytes, arrays: Arrays, facts: Mapping[str, str] | None = None) -> None:
    """`kind` is eight bytes that say what the arrays are, and in which version."""
    placed, at = [], 0
    for name, array in arrays.items():
        placed.append(_Array(name, array.dtype.str, array.shape, at, crc32(_bytes(array))))
        at += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    head = msgspec.json.encode(_Head(at, tuple(placed), dict(facts or {})))
    stream.write(kind + len(head).to_bytes(4, "little") + crc32(head).to_bytes(4, "little") + head)
    stream.write(bytes(-(HEAD_BYTES + len(head)) % ALIGNMENT))
    for array in arrays.values():
        stream.write(_bytes(array))
        stream.write(bytes(-array.nbytes % ALIGNMENT))


def map_arrays(file: Path, kind: bytes) -> Mapped | None:
    """None where there is no such file, or none that can be used."""
    try:
        with file.open("rb") as stream:
            return _mapped(stream, kind)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, msgspec.MsgspecError) as error:
        logger.warning("The index file %s cannot be used (%r): it is made anew.", file, error)
        return None


def _mapped(stream: BinaryIO, kind: bytes) -> Mapped | None:
    start = stream.read(HEAD_BYTES)
    encoded = stream.read(int.from_bytes(start[8:12], "little"))
    if start[:KIND_BYTES] != kind or crc32(encoded) != int.from_bytes(start[12:16], "little"):
        return None
    head = _head.decode(encoded)
    first = -(-(HEAD_BYTES + len(encoded)) // ALIGNMENT) * ALIGNMENT
    if os.fstat(stream.fileno()).st_size != first + head.size:
        return None
    mapped = np.memmap(stream, np.uint8, "c")
    arrays = {one.name: _part(mapped, first, one) for one in head.arrays}
    return Mapped(arrays, head.facts, {one.name: one.checksum for one in head.arrays})


def _part(mapped: Any, first: int, one: _Array) -> Any:
    kind = np.dtype(one.kind)
    start = first + one.at
    return np.asarray(mapped[start : start + prod(one.shape) * kind.itemsize]).view(kind).reshape(one.shape)


def _bytes(array: Any) -> Any:
    """Without its shape, since an array of no rows cannot be written as it is."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
