"""The table of a memory's fields.

SQL, copies between stores, import checks and the Markdown mirror derive from it; revisions and
export lines derive from `types.Memory`. A new field needs a line here, one in `Memory` and a
migration per store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Literal

import msgspec

from trivet.common.clock import moment_or_none, stamp_or_none
from trivet.types import Memory, Source

# The type of a field's value, which determines how every store reads and writes it.
Kind = Literal["text", "number", "texts", "time", "flag", "count", "state", "source"]


class Field(msgspec.Struct, frozen=True):
    name: str
    kind: Kind
    columns: tuple[str, ...] = ()  # if not one column of the same name
    front: str | None = None  # its name in the front matter of a mirrored file
    fixed: bool = False  # set at creation, never changed
    # Ignored when two memories are compared.
    bookkeeping: bool = False

    @property
    def stored_in(self) -> tuple[str, ...]:
        return self.columns or (self.name,)


FIELDS: tuple[Field, ...] = (
    Field("id", "text", fixed=True),
    Field("content", "text"),
    Field("title", "text", front="title"),
    Field("category", "text", front="category"),
    Field("tags", "texts", front="tags"),
    Field("expanded_keywords", "texts", front="keywords"),
    Field("importance", "number", front="importance"),
    Field("confidence", "number", front="confidence"),
    Field("scope", "text", front="scope"),
    Field(
        "source", "source", ("source_uri", "source_start_line", "source_end_line"), front="source"
    ),
    Field("created_at", "time", front="created", bookkeeping=True),
    Field("updated_at", "time", bookkeeping=True),
    Field("valid_from", "time", front="valid_from"),
    Field("valid_to", "time", front="valid_to"),
    Field("state", "state", front="state"),
    Field("sensitive", "flag", front="sensitive"),
    Field("revision", "count", bookkeeping=True),
    Field("owner", "text", fixed=True, bookkeeping=True),
)

# Columns computed from a memory's text when it is written (`Document.in_row`).
DERIVED = ("length", "times")

_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode
_encode = msgspec.json.Encoder().encode


def texts(text: str) -> tuple[str, ...]:
    return _decode_texts(text) if text != "[]" else ()


def as_json(values: Iterable[Any]) -> str:
    return _encode(list(values)).decode()


def _source(uri: str | None, start_line: int | None, end_line: int | None) -> Source | None:
    return Source(uri=uri, start_line=start_line, end_line=end_line) if uri is not None else None


def _source_columns(source: Source | None) -> tuple[Any, ...]:
    return (source.uri, source.start_line, source.end_line) if source else (None, None, None)


# Conversions between columns and values; kinds that need none are missing.
_READ: Mapping[Kind, Callable[..., Any]] = {
    "texts": texts,
    "flag": bool,
    "number": float,  # raises for a damaged row, which is then reported as damaged
    "source": _source,
    "time": moment_or_none,
}
_WRITE: Mapping[Kind, Callable[[Any], tuple[Any, ...]]] = {
    "texts": lambda values: (as_json(values),),
    "source": _source_columns,
    "time": lambda moment: (stamp_or_none(moment),),
}


@cache
def columns() -> tuple[str, ...]:
    """Return the columns of table `memory` in SELECT order."""
    return ("key", *(column for field in FIELDS for column in field.stored_in), *DERIVED)


@cache
def sql_lists() -> Mapping[str, str]:
    """Return what SQL files insert as `{memory}` and so on."""
    changed = [column for field in FIELDS if not field.fixed for column in field.stored_in]
    return {
        "memory": ", ".join(f"m.{column}" for column in columns()),
        "memory_columns": ", ".join(columns()),
        "memory_values": ", ".join(f":{column}" for column in columns()),
        "memory_changes": ", ".join(f"{column} = :{column}" for column in [*changed, *DERIVED]),
    }


@cache
def _reader() -> Callable[..., Memory]:
    """Compile a row-to-memory function: 2 instead of 7 microseconds for each of dozens of rows."""
    reading = {f"read_{kind}": read for kind, read in _READ.items()}
    given = ", ".join(f"{field.name}={_expression(field)}" for field in FIELDS)
    made: Callable[..., Memory] = eval(
        f"lambda {', '.join(columns())}: Memory({given})", {"Memory": Memory, **reading}
    )
    return made


def _expression(field: Field) -> str:
    stored = ", ".join(field.stored_in)
    return f"read_{field.kind}({stored})" if field.kind in _READ else stored


def to_memory(row: Iterable[Any]) -> Memory:
    """Convert a row selected as `{memory}`."""
    return _reader()(*row)


def to_row(memory: Memory, derived: Mapping[str, Any]) -> dict[str, Any]:
    """Return every column except the key; `derived` are the values of `DERIVED`."""
    row = {**msgspec.structs.asdict(memory), **derived}
    for name, stored_in, write in _fields_written():
        row.update(zip(stored_in, write(row.pop(name)), strict=True))
    return row


@cache
def _fields_written() -> tuple[tuple[str, tuple[str, ...], Callable[[Any], tuple[Any, ...]]], ...]:
    return tuple(
        (field.name, field.stored_in, _WRITE[field.kind])
        for field in FIELDS
        if field.kind in _WRITE
    )
