"""Arrays in one memory-mapped file: processes start at once and share one copy.

A file is never changed. Opening checks its head; only `damaged` checks the arrays' checksums.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

import msgspec
import numpy as np

logger = logging.getLogger("trivet")

# Arrays start at multiples of this; numbers of eight bytes need alignment.
ALIGNMENT = 64
KIND_BYTES = 8
HEAD_BYTES = 16
# Space for the head and its prefix: about a hundred arrays.
HEADER_ROOM = 32_768

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
    """A mapped file; writes to the arrays stay in this process."""

    arrays: dict[str, Any]
    facts: dict[str, str]
    checksums: dict[str, int]

    def damaged(self) -> list[str]:
        """Read all arrays and return the names of those with a wrong checksum."""
        return [
            name
            for name, array in self.arrays.items()
            if crc32(_bytes(array)) != self.checksums[name]
        ]


_head = msgspec.json.Decoder(_Head)


class ArrayWriter:
    """A writer of one array at a time, to bound memory, and of the head last.

    `kind` is eight bytes naming the content and its version.
    """

    def __init__(self, stream: BinaryIO, kind: bytes) -> None:
        self._stream = stream
        self._kind = kind
        self._written: list[_Array] = []
        self._at = 0
        stream.write(bytes(HEADER_ROOM))

    def add(self, name: str, array: Any) -> None:
        self.add_chunks(name, array.dtype, array.shape, (array,))

    def add_chunks(
        self, name: str, kind: Any, shape: tuple[int, ...], portions: Iterable[Any]
    ) -> None:
        checksum = size = 0
        for portion in portions:
            written = _bytes(portion)
            checksum = crc32(written, checksum)
            size += self._stream.write(written)
        if size != prod(shape) * np.dtype(kind).itemsize:
            raise ValueError(f"{name}: got {size} bytes, which does not match {shape} of {kind}")
        self._stream.write(bytes(-size % ALIGNMENT))
        self._written.append(_Array(name, np.dtype(kind).str, shape, self._at, checksum))
        self._at += -(-size // ALIGNMENT) * ALIGNMENT

    def finish(self, facts: Mapping[str, str] | None = None) -> None:
        head = msgspec.json.encode(_Head(self._at, tuple(self._written), dict(facts or {})))
        if len(head) > HEADER_ROOM - HEAD_BYTES:
            raise ValueError(f"the head takes {len(head)} bytes, more than its reserved space")
        head = head.ljust(HEADER_ROOM - HEAD_BYTES)
        self._stream.seek(0)
        self._stream.write(
            self._kind + len(head).to_bytes(4, "little") + crc32(head).to_bytes(4, "little") + head
        )


def write_arrays(
    stream: BinaryIO, kind: bytes, arrays: Arrays, facts: Mapping[str, str] | None = None
) -> None:
    writer = ArrayWriter(stream, kind)
    for name, array in arrays.items():
        writer.add(name, array)
    writer.finish(facts)


def map_arrays(file: Path, kind: bytes) -> Mapped | None:
    """Return the file's arrays; None if it is missing or unusable."""
    try:
        with file.open("rb") as stream:
            return _mapped(stream, kind)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, msgspec.MsgspecError) as error:
        logger.warning("The index file %s is unusable (%r) and will be rebuilt.", file, error)
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
    return (
        np.asarray(mapped[start : start + prod(one.shape) * kind.itemsize])
        .view(kind)
        .reshape(one.shape)
    )


def _bytes(array: Any) -> Any:
    """Flatten first: an array without rows has no byte view."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
