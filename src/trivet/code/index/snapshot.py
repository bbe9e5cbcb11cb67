"""A segment as one flat file, mapped instead of read: a new process searches at once, and processes share it.

A file that is cut short or of another version is made anew.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from trivet.atomic_write import atomic_write
from trivet.code.index.segment import Segment
from trivet.mapped_arrays import map_arrays, write_arrays

logger = logging.getLogger("trivet.code")

KIND = b"TRIVETC2"


def save(file: Path, segment: Segment) -> None:
    """Written beside and renamed, so that readers have the old one or the whole new one."""
    with atomic_write(file) as stream:
        write_arrays(stream, KIND, dict(_arrays("", segment)))


def load(file: Path) -> Segment | None:
    """The mapped segment, or None where there is none that can be used."""
    mapped = map_arrays(file, KIND)
    if mapped is None:
        return None
    try:
        segment: Segment = _built(Segment, "", mapped.arrays)
    except KeyError as error:
        logger.warning("The snapshot %s cannot be used (%r): it is made anew.", file, error)
        return None
    return segment


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
