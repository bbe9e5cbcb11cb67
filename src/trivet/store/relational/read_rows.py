"""What `doctor` makes of each row: whether it can be read as an export or a recall would read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from trivet import memory_fields
from trivet.decoding import known_type
from trivet.types import Memory

# Named in the finding; of the others their number.
SHOWN = 3
# What is read of these tables, in this order, so that a row can be understood; of the others everything.
MEMORY_COLUMNS = memory_fields.columns()
REVISION_COLUMNS = ("memory", "revision", "snapshot")
COLUMNS: Mapping[str, Sequence[str]] = {
    "memory": MEMORY_COLUMNS,
    "revision": REVISION_COLUMNS,
    "proposal": ("id", "tags"),
    "vault": ("name", "options"),
}


class Damaged(msgspec.Struct, frozen=True):
    """A value that is no text of UTF-8."""


class RowCheck:
    """Gathers what is wrong with rows. Memories come before revisions: the last of these must say the same."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.rows = 0
        self._said: dict[tuple[int, int], int] = {}  # a digest of each, since all texts may not fit into memory
        self._reads: Mapping[str, Callable[[Sequence[Any]], None]] = {
            "memory": self._memory,
            "revision": self._revision,
            "proposal": _list_of_texts,
            "vault": _object,
        }

    def rows_of(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        read = self._reads.get(table)
        for number, row in enumerate(rows, 1):
            self.rows += 1
            try:
                if any(isinstance(value, Damaged) for value in row):
                    raise ValueError("it holds what is no text")
                if read is not None:
                    read(row)
            except (ValueError, TypeError, msgspec.MsgspecError, RecursionError) as error:
                self.problems.append(f"{table}, row {number}: {error}")

    def _memory(self, row: Sequence[Any]) -> None:
        memory = memory_fields.to_memory(row)
        msgspec.json.decode(msgspec.json.encode(memory), type=known_type(Memory))
        self._said[row[0], memory.revision] = hash((memory.content, memory.title))

    def _revision(self, row: Sequence[Any]) -> None:
        key, number, snapshot = row
        memory = msgspec.json.decode(snapshot, type=known_type(Memory))
        said = self._said.pop((key, number), None)
        if said is not None and said != hash((memory.content, memory.title)):
            raise ValueError(f"memory {memory.id} says something else than its last revision")


def told(problems: Sequence[str]) -> str:
    more = f" and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
    return "; ".join(problems[:SHOWN]) + more


def _list_of_texts(row: Sequence[Any]) -> None:
    memory_fields.texts(row[1])


def _object(row: Sequence[Any]) -> None:
    msgspec.json.decode(row[1], type=known_type(dict[str, Any]))
