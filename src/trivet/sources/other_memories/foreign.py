"""Other systems: the data types of their readers, and read-only access to their files.

The help texts of the command line need the names, so sqlite3 is imported where a file is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from trivet.errors import InvalidInput
from trivet.types import LinkKind

if TYPE_CHECKING:
    import sqlite3


class ForeignMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory of another system; `key` and links are that system's ids."""

    kind: str
    key: str
    content: str
    title: str = ""
    category: str = "facts"
    tags: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    importance: float = 0.5
    confidence: float = 1.0
    created_at: str | None = None
    updated_at: str | None = None
    valid_to: str | None = None
    sensitive: bool = False
    links: tuple[tuple[LinkKind, str], ...] = ()


class ForeignSystem(msgspec.Struct, frozen=True):
    """A system, its reader, and the mapping of fields shown before an import."""

    label: str
    reads: str
    read: Callable[[Path], Iterator[ForeignMemory]]
    mapping: tuple[tuple[str, str], ...]


SystemName = Literal[
    "mcp-memory", "claude-memory-mcp", "mem0", "basic-memory", "claude-mem", "agentmemory"
]


def json_of(path: Path) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput(f"{path} is not JSON ({error}). Nothing was imported.") from None


def objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        try:
            decoded = (
                msgspec.json.decode(value) if value.lstrip().startswith("[") else value.split(",")
            )
        except (msgspec.DecodeError, RecursionError):
            decoded = value.split(",")
        value = decoded
    items = value if isinstance(value, list) else []
    return tuple(
        text
        for item in items
        if isinstance(item, (str, int, float)) and (text := str(item).strip())
    )


def number(value: Any, otherwise: float) -> float:
    """Return a number from 0 to 1; some systems count to 10."""
    if not isinstance(value, (int, float)) or value != value or value < 0:
        return otherwise
    return min(value if value <= 1 else value / 10, 1.0)


def is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\x00"
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    import sqlite3

    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            yield connection
    except sqlite3.Error as error:
        raise InvalidInput(
            f"{path} cannot be read as SQLite ({error}). Nothing was imported."
        ) from None


def rows(
    path: Path, table: str, order: Sequence[str], needed: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yield a table's rows, none if this version of the program lacks it.

    `order` names columns to sort by, if they exist. A table without a `needed` column is an error.
    """
    if not is_sqlite(path):
        raise InvalidInput(f"{path} is not an SQLite file. Nothing was imported.")
    with _opened(path) as connection:
        columns = {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")}
        if missing := [name for name in needed if columns and name not in columns]:
            raise InvalidInput(
                f"{path}: the table {table} has no column {missing[0]}. Is this the right file?"
            )
        if columns:
            by = ", ".join(name for name in order if name in columns) or "rowid"
            for row in connection.execute(f"SELECT * FROM {table} ORDER BY {by}"):
                yield dict(row)


def has_table(path: Path, table: str) -> bool:
    if not is_sqlite(path):
        return False
    with _opened(path) as connection:
        return connection.execute(f"PRAGMA table_info({table})").fetchone() is not None
