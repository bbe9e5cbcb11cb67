"""The arguments of a tool as an agent is told of them.

A model reads the list of tools in every conversation, so it is short: what is seldom needed stands in one argument,
`more`, with a phrase for each. Bounds are left out; the server checks them, and its refusal names them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trivet.contract import Parameters, Tool, json_schema
from trivet.errors import InvalidInput

MORE = "more"
Schema = dict[str, Any]
# What the server checks anyway.
_BOUNDS = ("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "pattern", "title")
# A default that says no more than that the argument may be left out.
_NO_DEFAULT: tuple[Any, ...] = (None, [], (), False)


def input_schema(request: type[Parameters], tool: Tool, categories: Sequence[str]) -> Schema:
    """What must be given comes first, for a reader in a hurry, and `more` last."""
    whole = json_schema(request)
    required = whole.get("required", [])
    shown = {name: _short(field) for name, field in whole["properties"].items() if name not in tool.rare}
    names = sorted(shown, key=lambda name: name not in required)
    properties = {name: shown[name] for name in names}
    for name in tool.told_elsewhere:
        properties.get(name, {}).pop("description", None)
    _name_categories(properties, categories)
    if rare := [name for name in whole["properties"] if name in tool.rare]:
        properties[MORE] = {"type": "object", "description": _more(whole["properties"], rare, tool)}
    schema: Schema = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def flat(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the contract has them: those inside `more` beside the others."""
    given = dict(arguments)
    more = given.pop(MORE, None)
    if more is None:
        return given
    if not isinstance(more, Mapping):
        raise InvalidInput(f'{MORE}: an object of further arguments is expected, such as {{"sort": "recency"}}.')
    if twice := sorted(set(given) & set(more)):
        raise InvalidInput(f"{', '.join(twice)}: given twice, once inside {MORE}. Give it once.")
    return {**given, **more}


def _short(field: Schema) -> Schema:
    """Without bounds, and without "or null": an argument can be left out instead."""
    options = [option for option in field.get("anyOf", ()) if option.get("type") != "null"]
    kept = {**options[0], **field} if len(options) == 1 else dict(field)
    kept = {name: value for name, value in kept.items() if name not in (*_BOUNDS, "anyOf")}
    if kept.get("default") in _NO_DEFAULT:
        kept.pop("default", None)
    if "enum" in kept:  # whose values stand beside it
        kept.pop("description", None)
    if isinstance(items := kept.get("items"), dict):
        kept["items"] = {name: value for name, value in _short(items).items() if name != "description"}
    return kept


def _name_categories(properties: Schema, categories: Sequence[str]) -> None:
    field = properties.get("category")
    if field and categories and "description" in field and field["type"] == "string":
        field["description"] = f"One of {', '.join(categories)}."


def _more(fields: Mapping[str, Schema], rare: Sequence[str], tool: Tool) -> str:
    """A phrase for each, as the contract has it; where another tool tells it, the name alone."""
    told = [_phrase(name, fields[name]) for name in rare if name not in tool.told_elsewhere]
    names = [name for name in rare if name in tool.told_elsewhere]
    text = f"Seldom needed. {' '.join(told)}".strip()
    return f"{text} {tool.elsewhere}: {', '.join(names)}.".strip() if names else text


def _phrase(name: str, field: Schema) -> str:
    """The name, its type where it is no text, and the first clause of what the contract says of it."""
    short = _short(field)
    one = short.get("items", short)
    kind = "|".join(one.get("enum", ())) or one.get("type", "")
    kind = f"list of {kind}" if one is not short else kind
    text = str(field.get("description") or short.get("description", "")).partition(";")[0].rstrip(".")
    return f"{name}: {text}." if kind == "string" else f"{name} ({kind}): {text}."
