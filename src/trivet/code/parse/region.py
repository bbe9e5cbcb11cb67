"""A stretch of lines with a name: what chunks are cut along."""

from __future__ import annotations

import msgspec

from trivet.code.types import Definition, Kind


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that belong together: a definition, an implementation block, a section. Lines count from 1."""

    top: int  # the first line of the comment above it, or its own
    start: int
    end: int
    kind: Kind
    name: str  # qualified
    signature: str = ""
    definition: Definition | None = None  # None where nothing is defined: a section, `impl Trait for Type`
