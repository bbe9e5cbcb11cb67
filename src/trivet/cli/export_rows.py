"""The lines of an export on their way to a file, and what its last line says was left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from trivet.decoding import known_type


class _Left(msgspec.Struct, frozen=True):
    unreadable: tuple[str, ...] = ()


class ExportRows:
    def __init__(self, rows: Iterable[str]) -> None:
        self._rows = rows
        self._last = ""

    def __iter__(self) -> Iterator[str]:
        for row in self._rows:
            self._last = row
            yield row

    def unreadable(self) -> tuple[str, ...]:
        """Once all lines are written: what the store could not read."""
        if not self._last.startswith('{"trivet_export_end"'):
            return ()
        return msgspec.json.decode(self._last, type=known_type(_Left)).unreadable
