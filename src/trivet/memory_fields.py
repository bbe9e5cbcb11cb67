"""The fields of a memory, written down once.

Rows, INSERT, UPDATE and SELECT, the copies between stores, the checks of an import and the Markdown mirror follow from
this table; revisions and export lines follow from `types.Memory` itself. A new field costs a line here, one in `Memory`
and a migration for each store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Literal

import msgspec

from trivet.common.clock import moment_or_none, stamp_or_none
from trivet.types import Memory, Source

# What a field holds, which says how it is written and read everywhere.
Kind = Literal["text", "number", "texts", "time", "flag", "count", "state", "source"]


class Field(msgspec.Struct, frozen=True):
    name: str
    kind: Kind
    columns: tuple[str, ...] = ()  # where they are not one of the same name
    front: str | None = (
        None  # its name in the front matter of a mirrored file; the content is the text below
    )
    fixed: bool = False  # set when the memory is made, never by a change
    bookkeeping: bool = (
        False  # not part of what the memory says: two that differ in it alone are the same
    )

    @property
    def stored_in(self) -> tuple[str, ...]:
        return self.columns or (self.name,)


# In the order of a mirrored file's front matter.
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

# What is made of a memory's text when it is written (`Document.in_row`), in columns of its own.
DERIVED = ("length", "times")

_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode
_encode = msgspec.json.Encoder().encode


def texts(text: str) -> tuple[str, ...]:
    """A column with a list of texts."""
    return _decode_texts(text) if text != "[]" else ()


def as_json(values: Iterable[Any]) -> str:
    """A list as a column or a parameter of a query takes it."""
    return _encode(list(values)).decode()


def _source(uri: str | None, start_line: int | None, end_line: int | None) -> Source | None:
    return Source(uri=uri, start_line=start_line, end_line=end_line) if uri is not None else None


def _source_columns(source: Source | None) -> tuple[Any, ...]:
    return (source.uri, source.start_line, source.end_line) if source else (None, None, None)


# From a field's columns to its value and back, where that is not the column itself.
_READ: Mapping[Kind, Callable[..., Any]] = {
    "texts": texts,
    "flag": bool,
    "number": float,  # what is none, in a damaged row, is told as damaged
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
    """Of the table `memory`, as every SELECT of a memory lists them: its key, its fields, what was made of its text."""
    return ("key", *(column for field in FIELDS for column in field.stored_in), *DERIVED)


@cache
def sql_lists() -> Mapping[str, str]:
    """What the SQL files say of a memory's columns, as `{memory}` and so on."""
    changed = [column for field in FIELDS if not field.fixed for column in field.stored_in]
    return {
        "memory": ", ".join(f"m.{column}" for column in columns()),
        "memory_columns": ", ".join(columns()),
        "memory_values": ", ".join(f":{column}" for column in columns()),
        "memory_changes": ", ".join(f"{column} = :{column}" for column in [*changed, *DERIVED]),
    }


@cache
def _reader() -> Callable[..., Memory]:
    """From the values of a row to a memory, as one would write it out by hand: 2 microseconds a row and not 7.

    A recall reads dozens of rows.
    """
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
    """A row that was selected as `{memory}`."""
    return _reader()(*row)


def to_row(memory: Memory, derived: Mapping[str, Any]) -> dict[str, Any]:
    """Every column but the key. `derived` are those that were made of its text."""
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
