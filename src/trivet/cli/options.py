"""Command-line parameters from the JSON Schema of requests, and completion of ids."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from trivet.contract import Parameters, json_schema
from trivet.contract.parameters import IdOf, id_fields
from trivet.errors import TrivetError

if TYPE_CHECKING:
    from trivet import Trivet


ALIASES: dict[str, tuple[str, ...]] = {
    "limit": ("-n",),
    "tags": ("--tag", "-t"),
    "category": ("-c",),
    "scope": ("-s",),
    "expanded_keywords": ("--keyword", "-k"),
}
# Optional, but positional.
POSITIONAL_FIELDS = ("text",)
# These read standard input if given as `-`.
LONG_TEXT_FIELDS = ("content", "query")

_TYPES: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool}


class Field(msgspec.Struct, frozen=True):
    name: str
    schema: Mapping[str, Any]
    help: str
    required: bool
    default: Any
    nullable: bool
    id_of: IdOf | None = None  # what the field identifies, for completion

    @property
    def repeatable(self) -> bool:
        return self.schema.get("type") == "array"

    @property
    def kind(self) -> Any:
        return list[_item_type(self)] if self.repeatable else _type_of(self.schema)  # type: ignore[misc]


@cache
def fields_of(request: type[Parameters]) -> tuple[Field, ...]:
    """Return the required fields first, as they are positional."""
    whole = json_schema(request)
    required = whole.get("required", ())
    fields = [
        Field(
            name=name,
            schema=_without_null(schema),
            help=str(schema.get("description") or _without_null(schema).get("description", "")),
            required=name in required,
            default=schema.get("default"),
            nullable=schema is not _without_null(schema) and "default" not in schema,
            id_of=id_fields(request).get(name),
        )
        for name, schema in whole.get("properties", {}).items()
    ]
    return tuple(sorted(fields, key=lambda field: not field.required))


def parameters_of(request: type[Parameters]) -> Iterator[inspect.Parameter]:
    for field in fields_of(request):
        info = _argument(field) if _is_positional(field) else _option(field)
        default = inspect.Parameter.empty if field.required else _shown_default(field)
        yield keyword(
            field.name,
            Annotated[field.kind if field.required else field.kind | None, info],
            default,
        )


def keyword(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


def arguments_of(request: type[Parameters], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request's arguments; omitted options stay out and an empty text clears a field."""
    from trivet.cli.terminal import read_if_dash

    given: dict[str, Any] = {}
    for field in fields_of(request):
        value = values[field.name]
        if value is None or value == []:
            continue
        if field.repeatable:
            given[field.name] = () if value == [""] else tuple(str(item) for item in value)
        elif value == "" and field.nullable:
            given[field.name] = None
        else:
            given[field.name] = read_if_dash(value) if field.name in LONG_TEXT_FIELDS else value
    return given


# How an error about an empty text starts after the field's name.
_EMPTY = ("expected str of length >= 1.", "the text is empty.")


def in_typed_names(message: str, request: type[Parameters], typed: Mapping[str, Any]) -> str:
    """Return an error about a field as one about the option that the user typed."""
    name, _, problem = message.partition(": ")
    field = next((one for one in fields_of(request) if one.name == name), None)
    if field is None or name not in typed:
        return message
    option = "" if _is_positional(field) else f"--{name.replace('_', '-')}"
    for start in _EMPTY:
        if problem.startswith(start):
            return f"{option or f'The {name}'} is empty.{problem.removeprefix(start)}"
    return f"{option or name}: {problem}"


def _is_positional(field: Field) -> bool:
    return field.required or field.name in POSITIONAL_FIELDS


def _argument(field: Field) -> Any:
    help = field.help + (" `-` reads standard input." if field.name in LONG_TEXT_FIELDS else "")
    return typer.Argument(
        help=help,
        metavar=field.name.upper(),
        show_default=False,
        autocompletion=completer(field.id_of),
    )


def _option(field: Field) -> Any:
    return typer.Option(
        *_option_names(field),
        help=f"{field.help} Repeatable." if field.repeatable else field.help,
        metavar=None if field.kind is bool else _metavar(field),
        min=field.schema.get("minimum"),
        max=field.schema.get("maximum"),
        show_default=field.default not in (None, False, [], ()),
        autocompletion=completer(field.id_of),
    )


def _option_names(field: Field) -> tuple[str, ...]:
    name = f"--{field.name.replace('_', '-')}"
    if field.kind is bool and field.default is not False:
        return (f"{name}/--no-{name[2:]}",)
    return (name, *ALIASES.get(field.name, ()))


def _metavar(field: Field) -> str:
    schema = field.schema["items"] if field.repeatable else field.schema
    return _choices(schema) or ("TEXT" if schema["type"] == "string" else "NUMBER")


def _choices(schema: Mapping[str, Any]) -> str:
    return "|".join(schema.get("enum", ()))


def _shown_default(field: Field) -> Any:
    return None if field.repeatable else field.default


def _item_type(field: Field) -> Any:
    items = field.schema["items"]
    # Typer takes choices as a Literal for one value, but only as an Enum for several.
    return (
        StrEnum(field.name, [(choice, choice) for choice in items["enum"]])
        if "enum" in items
        else _type_of(items)
    )


def _type_of(schema: Mapping[str, Any]) -> Any:
    return Literal[tuple(schema["enum"])] if "enum" in schema else _TYPES[schema["type"]]


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    return options[0] if options else schema


# The shell waits; older ids are seldom meant.
MAX_SCANNED = 1_000
MAX_OFFERED = 50

Completer = Callable[[typer.Context, str], list[tuple[str, str]]]


def completer(kind: IdOf | None) -> Completer | None:
    if kind is None:
        return None

    def offered(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        return matching_ids(kind, context, incomplete)

    return offered


def matching_ids(kind: IdOf, context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from trivet.cli.session import Session

    path = context.params.get("path") or context.find_root().params.get("path")
    session = Session(path, as_json=False)
    try:
        known = _memories(session.memory) if kind == "memory" else _proposals(session.memory)
        return [one for one in known if one[0].startswith(incomplete.lower())][:MAX_OFFERED]
    except TrivetError:  # the shell shows only completions; the command itself reports the error
        return []
    finally:
        session.close()


def _memories(memory: Trivet) -> Iterator[tuple[str, str]]:
    # `restore` takes forgotten memories, so completion offers every state.
    page = memory.list(limit=MAX_SCANNED, state=("active", "superseded", "archived", "deleted"))
    return ((one.id, _words(one.title or one.content)) for one in page.memories)


def _proposals(memory: Trivet) -> Iterator[tuple[str, str]]:
    page = memory.inbox_list(limit=MAX_SCANNED)
    return ((one.id, _words(one.content)) for one in page.proposals)


def _words(text: str) -> str:
    from trivet.cli.views.memories import preview

    return preview(text, 60)
