"""MCP: the tools, resources and prompts as a server, and that server on standard input and output."""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, BinaryIO, Protocol, TypeVar

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from trivet import __version__
from trivet.errors import NotFound, TrivetError
from trivet.secrets.detect import without_secrets
from trivet.serve.failures import log_failure, told
from trivet.serve.mcp.client_folder import client_folder
from trivet.serve.mcp.code_tools import CODE_TOOLS, CodeTool, CodeTools
from trivet.serve.mcp.greeting import Greeted, Offer
from trivet.serve.mcp.lazy_store import LazyStore
from trivet.serve.mcp.listings import INSTRUCTIONS, MEMORY_PREFIX, MEMORY_TEMPLATE, NAME, STATS_URI, TITLE, listings
from trivet.serve.mcp.prompts import write_prompt
from trivet.serve.mcp.stdio import standard_streams
from trivet.serve.mcp.tools import AgentTool, agent_tools, call
from trivet.settings import CATEGORIES, load_settings
from trivet.trivet import Trivet

logger = logging.getLogger("trivet.serve")

T = TypeVar("T")
NOT_GREETED = Greeted(())


class Memories(Protocol):
    """Runs a tool's work: on one store, or on the store of the caller who asks."""

    async def run(self, function: Callable[[Trivet], T], writes: bool = False) -> T: ...


def serve(path: str | None, offer: Offer, stream: BinaryIO, greeted: Greeted = NOT_GREETED) -> None:
    """Goes on with a client that was greeted, until the input ends or a signal comes."""
    code = CodeTools(load_settings(path=path)) if offer.code else None
    try:
        serve_on_standard_streams(
            path, lambda store: build_server(store, offer.reveal, offer.categories, code), stream, greeted
        )
    finally:
        if code is not None:
            code.close()


def serve_on_standard_streams(
    path: str | None, build: Callable[[LazyStore], Server[Any]], stream: BinaryIO, greeted: Greeted
) -> None:
    """Runs a server over the store at `path`, which the first call opens, until the input ends or a signal comes."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    store = LazyStore(path)
    try:
        anyio.run(_serve, build(store), stream, greeted)
    except* BrokenPipeError:
        logger.warning("The client went away without closing its end.")
    finally:
        store.close()


def build_server(
    store: Memories, reveal: bool = False, categories: Sequence[str] = CATEGORIES, code: CodeTools | None = None
) -> Server[Any]:
    """The server without a transport. The tools name the categories that the settings allow."""
    tools = agent_tools(reveal, categories)
    told = listings(tools, code is not None)
    return Server(
        NAME,
        version=__version__,
        title=TITLE,
        instructions=INSTRUCTIONS,
        on_list_tools=always(types.ListToolsResult.model_validate(told["tools/list"])),
        on_call_tool=_calling(store, tools, code),
        on_list_resources=always(types.ListResourcesResult.model_validate(told["resources/list"])),
        on_list_resource_templates=always(
            types.ListResourceTemplatesResult.model_validate(told["resources/templates/list"])
        ),
        on_read_resource=_reading(store, tools),
        on_list_prompts=always(types.ListPromptsResult.model_validate(told["prompts/list"])),
        on_get_prompt=_prompting(store, tools),
    )


async def _serve(server: Server[Any], stream: BinaryIO, greeted: Greeted) -> None:
    async with standard_streams(stream, greeted.lines, greeted.answered) as (read, write):
        await server.run(read, write, server.create_initialization_options())


def always(result: Any) -> Callable[[Any, Any], Awaitable[Any]]:
    async def handle(context: Any, parameters: Any) -> Any:
        return result

    return handle


def _calling(
    store: Memories, tools: Mapping[str, AgentTool], code: CodeTools | None
) -> Callable[..., Awaitable[types.CallToolResult]]:
    async def handle(context: Any, parameters: types.CallToolRequestParams) -> types.CallToolResult:
        if code is not None and parameters.name in CODE_TOOLS:
            return await _call_code(code, CODE_TOOLS[parameters.name], context, parameters.arguments or {})
        tool = tools.get(parameters.name)
        if tool is None:
            named = without_secrets(repr(parameters.name))
            names = [*tools, *(CODE_TOOLS if code is not None else ())]
            raise MCPError(types.INVALID_PARAMS, f"No tool {named}. There are: {', '.join(names)}.")
        try:
            writes = not tool.verb.read_only
            reply = await store.run(lambda memory: call(memory, tool, parameters.arguments or {}), writes)
        except Exception as error:  # noqa: BLE001 - one call's failure is told to its caller and ends nothing else
            return types.CallToolResult(content=[text_content(error_text(error, tool.name))], is_error=True)
        return types.CallToolResult(content=[text_content(reply.text)], structured_content=reply.structured)

    return handle


async def _call_code(
    code: CodeTools, tool: CodeTool, context: Any, arguments: Mapping[str, Any]
) -> types.CallToolResult:
    try:
        folder = await client_folder(context.session)
        text = await anyio.to_thread.run_sync(code.call, tool, arguments, folder)
    except Exception as error:  # noqa: BLE001 - as above
        return types.CallToolResult(content=[text_content(error_text(error, tool.name))], is_error=True)
    return types.CallToolResult(content=[text_content(text)])


def _reading(store: Memories, tools: dict[str, AgentTool]) -> Callable[..., Awaitable[types.ReadResourceResult]]:
    async def handle(context: Any, parameters: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(parameters.uri)
        try:
            text = await store.run(lambda memory: read_resource(uri, memory, tools))
        except Exception as error:  # noqa: BLE001 - as above
            raise MCPError(_code(error), error_text(error, "A resource")) from None
        contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
        return types.ReadResourceResult(contents=[contents])

    return handle


def _prompting(store: Memories, tools: Mapping[str, AgentTool]) -> Callable[..., Awaitable[types.GetPromptResult]]:
    async def handle(context: Any, parameters: types.GetPromptRequestParams) -> types.GetPromptResult:
        name, given, recall = parameters.name, parameters.arguments or {}, tools["memory_recall"]
        try:
            text = await store.run(lambda memory: write_prompt(name, given, memory, recall))
        except Exception as error:  # noqa: BLE001 - as above
            raise MCPError(_code(error), error_text(error, f"The prompt {name}")) from None
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text_content(text))])

    return handle


def error_text(error: Exception, where: str) -> str:
    """Our own errors teach; of any other the caller learns its kind, and the log all of it."""
    if isinstance(error, TrivetError):
        return told(error)
    log_failure(where, error)
    return f"Trivet failed at this ({type(error).__name__}); the server's log has the details. Other calls go on."


def _code(error: Exception) -> int:
    return types.INVALID_PARAMS if isinstance(error, TrivetError) else types.INTERNAL_ERROR


def text_content(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def read_resource(uri: str, memory: Trivet, tools: dict[str, AgentTool]) -> str:
    """The text at an address, with stored words wrapped as in the tools."""
    if uri == STATS_URI:
        return call(memory, tools["memory_stats"], {}).text
    if uri.startswith(MEMORY_PREFIX):
        return call(memory, tools["memory_get"], {"id": uri.removeprefix(MEMORY_PREFIX)}).text
    raise NotFound(f"There is nothing at {uri}. There are: {STATS_URI}, {MEMORY_TEMPLATE}.")
