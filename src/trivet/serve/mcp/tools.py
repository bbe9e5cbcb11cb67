"""MCP tools for any transport: verbs of the contract with results for agents.

Models read the tool list in every conversation, so `more` groups advanced arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from trivet.contract import (
    VERBS,
    Edit,
    LinkRequest,
    LinksRequest,
    Parameters,
    Request,
    Tool,
    UnlinkRequest,
    Verb,
    check,
    json_schema,
)
from trivet.contract.verbs import LinkEnds
from trivet.errors import InvalidInput
from trivet.serve.mcp import results, text
from trivet.serve.mcp.result_types import (
    NOTICE,
    Changed,
    Counted,
    Explained,
    Got,
    Judged,
    Linked,
    Listed,
    Recalled,
    Shape,
    Stored,
)
from trivet.serve.mcp.text import Wrapper, tag_stored_text
from trivet.settings import CATEGORIES
from trivet.trivet import Trivet

Arguments = Mapping[str, Any]

REVEAL_REFUSED = (
    "Sensitive contents stay masked here, so neither `reveal` nor `sensitive: false` is accepted. "
    "The user can read them with `trivet get ID --reveal`, or let agents read them by starting "
    "this server with TRIVET_MCP_REVEAL=1."
)


class LinkOrUnlink(LinkEnds, Request[Any], frozen=True, kw_only=True):
    """One tool for both verbs, to keep the tool list short."""

    remove: Annotated[bool, Meta(description="Remove this link instead of making it.")] = False


class Plain(Shape, frozen=True, kw_only=True):
    notice: str
    result: Any


class Presenter(msgspec.Struct, frozen=True, kw_only=True):
    result: type[Shape]
    act: Callable[[Trivet, Any], Any]
    text: Callable[[Any, Wrapper], str]
    request: type[Request[Any]] | None = None  # set if the tool takes other arguments than the verb


class AgentTool(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    description: str
    verb: Verb
    request: type[Request[Any]]
    presenter: Presenter
    reveals: bool
    categories: tuple[str, ...]

    def input_schema(self) -> dict[str, Any]:
        assert self.verb.tool is not None, "only verbs with a tool have a schema"
        return input_schema(self.request, self.verb.tool, self.categories)

    def output_schema(self) -> dict[str, Any]:
        return json_schema(self.presenter.result)


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    structured: dict[str, Any]
    text: str


def call(memory: Trivet, tool: AgentTool, arguments: Arguments) -> Reply:
    """Run a tool; arguments it lacks keep the verb's defaults."""
    arguments = merge_advanced_arguments(arguments)
    if "reveal" in arguments and "reveal" not in tool.request.__struct_fields__:
        raise InvalidInput(REVEAL_REFUSED)
    request = check(tool.request, arguments)
    if not tool.reveals and isinstance(request, Edit) and request.sensitive is False:
        raise InvalidInput(REVEAL_REFUSED)  # it would show the memory and send it to the embedder
    result = tool.presenter.act(memory, _verb_request(tool, request))
    wrapper = Wrapper()
    return Reply(
        structured=tag_stored_text(msgspec.to_builtins(result), wrapper),
        text=tool.presenter.text(result, wrapper),
    )


def agent_tools(
    reveal: bool = False, categories: Sequence[str] = CATEGORIES
) -> dict[str, AgentTool]:
    """Return the tools by name; without `reveal`, none shows or unprotects sensitive contents."""
    tools = [_tool(verb, reveal, tuple(categories)) for verb in VERBS.values() if verb.tool]
    return {tool.name: tool for tool in sorted(tools, key=_tool_order)}


def _tool(verb: Verb, reveal: bool, categories: tuple[str, ...]) -> AgentTool:
    assert verb.tool is not None, "the verb must have a tool"
    presenter = PRESENTERS.get(verb.name, PLAIN)
    request = presenter.request or verb.request
    return AgentTool(
        name=verb.tool.name,
        title=verb.tool.title,
        description=f"{verb.summary} {verb.tool.guidance}",
        verb=verb,
        request=request if reveal else _without(request, "reveal"),
        presenter=presenter,
        reveals=reveal,
        categories=categories,
    )


def _tool_order(tool: AgentTool) -> int:
    names = list(PRESENTERS)
    return names.index(tool.verb.name) if tool.verb.name in names else len(names)


@cache
def _without(request: type[Request[Any]], name: str) -> type[Request[Any]]:
    """Return the request type without a field, so that schema, check and errors agree."""
    if name not in request.__struct_fields__:
        return request
    fields: list[Any] = [
        (field.name, field.type) if field.required else (field.name, field.type, field.default)
        for field in msgspec.structs.fields(request)
        if field.name != name
    ]
    smaller = msgspec.defstruct(
        request.__name__, fields, bases=(Request,), frozen=True, kw_only=True
    )
    return cast(type[Request[Any]], smaller)


def _verb_request(tool: AgentTool, request: Request[Any]) -> Request[Any]:
    whole = tool.presenter.request or tool.verb.request
    if isinstance(request, whole):
        return request
    return whole(**{name: getattr(request, name) for name in request.__struct_fields__})


def _recall(memory: Trivet, request: Any) -> Recalled:
    return results.recalled(memory.perform(request))


def _explain(memory: Trivet, request: Any) -> Explained:
    return results.explained(memory.perform(request))


def _get(memory: Trivet, request: Any) -> Got:
    return results.got(memory.perform(request), memory.perform(LinksRequest(id=request.id)))


def _delete(memory: Trivet, request: Any) -> Changed:
    forgotten = memory.perform(request)
    return results.changed(
        forgotten, f"The user can restore it with: trivet restore {forgotten.id}"
    )


def _link(memory: Trivet, request: LinkOrUnlink) -> Linked:
    kind = UnlinkRequest if request.remove else LinkRequest
    made = memory.perform(kind(source=request.source, kind=request.kind, target=request.target))
    status: Literal["linked", "removed"] = "removed" if request.remove else "linked"
    ends = made or request  # with full ids; a removed link is shown as the agent named it
    return Linked(status=status, source=ends.source, kind=ends.kind, target=ends.target)


def _performed(shape: Callable[[Any], Any]) -> Callable[[Trivet, Any], Any]:
    return lambda memory, request: shape(memory.perform(request))


def _plain_text(result: Plain, wrapper: Wrapper) -> str:
    return f"{wrapper.notice}\n{wrapper.wrap(msgspec.json.encode(result.result).decode())}"


PLAIN = Presenter(
    result=Plain,
    act=_performed(lambda result: Plain(notice=NOTICE, result=msgspec.to_builtins(result))),
    text=_plain_text,
)
# In the order of the tool list.
PRESENTERS: Mapping[str, Presenter] = {
    "remember": Presenter(result=Stored, act=_performed(results.stored), text=text.stored_text),
    "recall": Presenter(result=Recalled, act=_recall, text=text.recalled_text),
    "get": Presenter(result=Got, act=_get, text=text.got_text),
    "list": Presenter(result=Listed, act=_performed(results.listed), text=text.listed_text),
    "edit": Presenter(result=Changed, act=_performed(results.changed), text=text.changed_text),
    "forget": Presenter(result=Changed, act=_delete, text=text.changed_text),
    "link": Presenter(result=Linked, act=_link, text=text.linked_text, request=LinkOrUnlink),
    "why_not": Presenter(result=Explained, act=_explain, text=text.explained_text),
    "feedback": Presenter(result=Judged, act=_performed(results.judged), text=text.judged_text),
    "stats": Presenter(result=Counted, act=_performed(results.counted), text=text.counted_text),
}


MORE = "more"
Schema = dict[str, Any]
# The server checks these anyway.
_BOUNDS = (
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "pattern",
    "title",
)
# Only says that the argument is optional.
_NO_DEFAULT: tuple[Any, ...] = (None, [], (), False)


def input_schema(request: type[Parameters], tool: Tool, categories: Sequence[str]) -> Schema:
    whole = json_schema(request)
    required = whole.get("required", [])
    shown = {
        name: _simplified(field)
        for name, field in whole["properties"].items()
        if name not in tool.advanced
    }
    names = sorted(shown, key=lambda name: name not in required)
    properties = {name: shown[name] for name in names}
    for name in tool.undescribed:
        properties.get(name, {}).pop("description", None)
    _name_categories(properties, categories)
    if advanced := [name for name in whole["properties"] if name in tool.advanced]:
        properties[MORE] = {
            "type": "object",
            "description": _advanced_description(whole["properties"], advanced, tool),
        }
    schema: Schema = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def merge_advanced_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(arguments)
    more = given.pop(MORE, None)
    if more is None:
        return given
    if not isinstance(more, Mapping):
        raise InvalidInput(
            f'{MORE} must be an object of further arguments, such as {{"sort": "recency"}}.'
        )
    if twice := sorted(set(given) & set(more)):
        raise InvalidInput(f"{', '.join(twice)}: given twice, once inside {MORE}. Give it once.")
    return {**given, **more}


def _simplified(field: Schema) -> Schema:
    """Remove bounds and null; an argument can be left out instead."""
    options = [option for option in field.get("anyOf", ()) if option.get("type") != "null"]
    kept = {**options[0], **field} if len(options) == 1 else dict(field)
    kept = {name: value for name, value in kept.items() if name not in (*_BOUNDS, "anyOf")}
    if kept.get("default") in _NO_DEFAULT:
        kept.pop("default", None)
    if "enum" in kept:  # its values say enough
        kept.pop("description", None)
    if isinstance(items := kept.get("items"), dict):
        kept["items"] = {
            name: value for name, value in _simplified(items).items() if name != "description"
        }
    return kept


def _name_categories(properties: Schema, categories: Sequence[str]) -> None:
    field = properties.get("category")
    if field and categories and "description" in field and field["type"] == "string":
        field["description"] = f"One of {', '.join(categories)}."


def _advanced_description(fields: Mapping[str, Schema], advanced: Sequence[str], tool: Tool) -> str:
    phrases = [_phrase(name, fields[name]) for name in advanced if name not in tool.undescribed]
    names = [name for name in advanced if name in tool.undescribed]
    text = f"Rarely needed. {' '.join(phrases)}".strip()
    return f"{text} {tool.description_from}: {', '.join(names)}.".strip() if names else text


def _phrase(name: str, field: Schema) -> str:
    short = _simplified(field)
    one = short.get("items", short)
    kind = "|".join(one.get("enum", ())) or one.get("type", "")
    kind = f"list of {kind}" if one is not short else kind
    text = (
        str(field.get("description") or short.get("description", "")).partition(";")[0].rstrip(".")
    )
    return f"{name}: {text}." if kind == "string" else f"{name} ({kind}): {text}."
