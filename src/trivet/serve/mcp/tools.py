"""The tools an agent has, for any transport: each is a verb of the contract, performed and shown for an agent."""

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
    Request,
    UnlinkRequest,
    Verb,
    check,
    json_schema,
)
from trivet.contract.verbs import LinkEnds
from trivet.errors import InvalidInput
from trivet.serve.mcp import results, text
from trivet.serve.mcp.marked import marked
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
from trivet.serve.mcp.schemas import flat, input_schema
from trivet.serve.mcp.text import Wrapper
from trivet.settings import CATEGORIES
from trivet.trivet import Trivet

Arguments = Mapping[str, Any]

REVEAL_REFUSED = (
    "Sensitive contents stay masked here, so neither `reveal` nor `sensitive: false` is accepted. The user can read "
    "them with `trivet get ID --reveal`, or allow it to agents by starting this server with TRIVET_MCP_REVEAL=1."
)


class LinkOrUnlink(LinkEnds, Request[Any], frozen=True, kw_only=True):
    """One tool for both verbs: an agent pays for its list of tools in every conversation."""

    remove: Annotated[bool, Meta(description="Remove this link instead of making it.")] = False


class Plain(Shape, frozen=True, kw_only=True):
    """The result of a verb that has no form of its own for agents."""

    notice: str
    result: Any


class Presenter(msgspec.Struct, frozen=True, kw_only=True):
    """How a verb's tool acts and what the agent gets: a result type, and its text for clients that show only text."""

    result: type[Shape]
    act: Callable[[Trivet, Any], Any]
    text: Callable[[Any, Wrapper], str]
    request: type[Request[Any]] | None = None  # where the tool takes other arguments than the verb


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
        assert self.verb.tool is not None, "only verbs with a tool have a schema here"
        return input_schema(self.request, self.verb.tool, self.categories)

    def output_schema(self) -> dict[str, Any]:
        return json_schema(self.presenter.result)


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    structured: dict[str, Any]
    text: str


def call(memory: Trivet, tool: AgentTool, arguments: Arguments) -> Reply:
    """Runs a tool. Its request refuses unknown arguments; what it lacks of the verb's keeps its default there."""
    arguments = flat(arguments)
    if "reveal" in arguments and "reveal" not in tool.request.__struct_fields__:
        raise InvalidInput(REVEAL_REFUSED)
    request = check(tool.request, arguments)
    if not tool.reveals and isinstance(request, Edit) and request.sensitive is False:
        raise InvalidInput(REVEAL_REFUSED)  # it would show the memory, and send it to the embedder
    result = tool.presenter.act(memory, _whole(tool, request))
    wrapper = Wrapper()
    return Reply(structured=marked(msgspec.to_builtins(result), wrapper), text=tool.presenter.text(result, wrapper))


def agent_tools(reveal: bool = False, categories: Sequence[str] = CATEGORIES) -> dict[str, AgentTool]:
    """The tools by name. Without `reveal` none of them can show what is sensitive, or make it less so."""
    tools = [_tool(verb, reveal, tuple(categories)) for verb in VERBS.values() if verb.tool]
    return {tool.name: tool for tool in sorted(tools, key=_place)}


def _tool(verb: Verb, reveal: bool, categories: tuple[str, ...]) -> AgentTool:
    assert verb.tool is not None, "only verbs with a tool come here"
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


def _place(tool: AgentTool) -> int:
    """In the order of the presenters; what has none comes last."""
    names = list(PRESENTERS)
    return names.index(tool.verb.name) if tool.verb.name in names else len(names)


@cache
def _without(request: type[Request[Any]], name: str) -> type[Request[Any]]:
    """The same request with one field less, so that schema, check and error texts all agree that it is not there.

    Made once: what is derived from a request, such as its schema, is kept for each class.
    """
    if name not in request.__struct_fields__:
        return request
    fields: list[Any] = [
        (field.name, field.type) if field.required else (field.name, field.type, field.default)
        for field in msgspec.structs.fields(request)
        if field.name != name
    ]
    smaller = msgspec.defstruct(request.__name__, fields, bases=(Request,), frozen=True, kw_only=True)
    return cast(type[Request[Any]], smaller)


def _whole(tool: AgentTool, request: Request[Any]) -> Request[Any]:
    """The verb's own request, of values that are checked already."""
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
    return results.changed(forgotten, f"The user can bring it back with: trivet restore {forgotten.id}")


def _link(memory: Trivet, request: LinkOrUnlink) -> Linked:
    kind = UnlinkRequest if request.remove else LinkRequest
    made = memory.perform(kind(source=request.source, kind=request.kind, target=request.target))
    status: Literal["linked", "removed"] = "removed" if request.remove else "linked"
    ends = made or request  # with whole ids; a link that is gone is told as the agent named it
    return Linked(status=status, source=ends.source, kind=ends.kind, target=ends.target)


def _shown(shape: Callable[[Any], Any]) -> Callable[[Trivet, Any], Any]:
    return lambda memory, request: shape(memory.perform(request))


def _plain_text(result: Plain, wrapper: Wrapper) -> str:
    return f"{wrapper.notice}\n{wrapper.wrap(msgspec.json.encode(result.result).decode())}"


PLAIN = Presenter(
    result=Plain,
    act=_shown(lambda result: Plain(notice=NOTICE, result=msgspec.to_builtins(result))),
    text=_plain_text,
)
# In the order in which an agent sees them.
PRESENTERS: Mapping[str, Presenter] = {
    "remember": Presenter(result=Stored, act=_shown(results.stored), text=text.stored_text),
    "recall": Presenter(result=Recalled, act=_recall, text=text.recalled_text),
    "get": Presenter(result=Got, act=_get, text=text.got_text),
    "list": Presenter(result=Listed, act=_shown(results.listed), text=text.listed_text),
    "edit": Presenter(result=Changed, act=_shown(results.changed), text=text.changed_text),
    "forget": Presenter(result=Changed, act=_delete, text=text.changed_text),
    "link": Presenter(result=Linked, act=_link, text=text.linked_text, request=LinkOrUnlink),
    "why_not": Presenter(result=Explained, act=_explain, text=text.explained_text),
    "feedback": Presenter(result=Judged, act=_shown(results.judged), text=text.judged_text),
    "stats": Presenter(result=Counted, act=_shown(results.counted), text=text.counted_text),
}
