"""The MCP server without a transport, and on standard streams."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError

from trivet import __version__
from trivet.errors import NotFound, TrivetError
from trivet.secrets.detect import without_secrets
from trivet.serve.failures import error_text
from trivet.serve.mcp.code_tools import CODE_TOOLS, CodeTool, CodeTools
from trivet.serve.mcp.listings import (
    INSTRUCTIONS,
    MEMORY_PREFIX,
    MEMORY_TEMPLATE,
    NAME,
    NO_HANDSHAKE,
    STATS_URI,
    TITLE,
    Handshake,
    Offer,
    listings,
    write_prompt,
)
from trivet.serve.mcp.stdio import serve_on_standard_streams
from trivet.serve.mcp.tools import AgentTool, agent_tools, call
from trivet.settings import CATEGORIES, load_settings
from trivet.trivet import Trivet

T = TypeVar("T")


class StoreRunner(Protocol):
    async def run(self, function: Callable[[Trivet], T], writes: bool = False) -> T: ...


def serve(
    path: str | None, offer: Offer, stream: BinaryIO, greeted: Handshake = NO_HANDSHAKE
) -> None:
    code = CodeTools(load_settings(path=path)) if offer.code else None
    try:
        serve_on_standard_streams(
            path,
            lambda store: build_server(store, offer.reveal, offer.categories, code),
            stream,
            greeted,
        )
    finally:
        if code is not None:
            code.close()


def build_server(
    store: StoreRunner,
    reveal: bool = False,
    categories: Sequence[str] = CATEGORIES,
    code: CodeTools | None = None,
) -> Server[Any]:
    tools = agent_tools(reveal, categories)
    public_message = listings(tools, code is not None)
    return Server(
        NAME,
        version=__version__,
        title=TITLE,
        instructions=INSTRUCTIONS,
        on_list_tools=constant_handler(
            types.ListToolsResult.model_validate(public_message["tools/list"])
        ),
        on_call_tool=_call_tool(store, tools, code),
        on_list_resources=constant_handler(
            types.ListResourcesResult.model_validate(public_message["resources/list"])
        ),
        on_list_resource_templates=constant_handler(
            types.ListResourceTemplatesResult.model_validate(
                public_message["resources/templates/list"]
            )
        ),
        on_read_resource=_read_resource(store, tools),
        on_list_prompts=constant_handler(
            types.ListPromptsResult.model_validate(public_message["prompts/list"])
        ),
        on_get_prompt=_get_prompt(store, tools),
    )


def constant_handler(result: Any) -> Callable[[Any, Any], Awaitable[Any]]:
    async def handle(context: Any, parameters: Any) -> Any:
        return result

    return handle


def _call_tool(
    store: StoreRunner, tools: Mapping[str, AgentTool], code: CodeTools | None
) -> Callable[..., Awaitable[types.CallToolResult]]:
    async def handle(context: Any, parameters: types.CallToolRequestParams) -> types.CallToolResult:
        if code is not None and parameters.name in CODE_TOOLS:
            return await _call_code(
                code, CODE_TOOLS[parameters.name], context, parameters.arguments or {}
            )
        tool = tools.get(parameters.name)
        if tool is None:
            named = without_secrets(repr(parameters.name))
            names = [*tools, *(CODE_TOOLS if code is not None else ())]
            message = f"Unknown tool {named}. Choose from: {', '.join(names)}."
            raise MCPError(types.INVALID_PARAMS, message)
        try:
            writes = not tool.verb.read_only
            reply = await store.run(
                lambda memory: call(memory, tool, parameters.arguments or {}), writes
            )
        except Exception as error:  # noqa: BLE001 - answered, so that other calls go on
            return types.CallToolResult(
                content=[text_content(error_text(error, tool.name))], is_error=True
            )
        return types.CallToolResult(
            content=[text_content(reply.text)], structured_content=reply.structured
        )

    return handle


async def _call_code(
    code: CodeTools, tool: CodeTool, context: Any, arguments: Mapping[str, Any]
) -> types.CallToolResult:
    try:
        folder = await client_folder(context.session)
        text = await anyio.to_thread.run_sync(code.call, tool, arguments, folder)
    except Exception as error:  # noqa: BLE001 - as above
        return types.CallToolResult(
            content=[text_content(error_text(error, tool.name))], is_error=True
        )
    return types.CallToolResult(content=[text_content(text)])


def _read_resource(
    store: StoreRunner, tools: dict[str, AgentTool]
) -> Callable[..., Awaitable[types.ReadResourceResult]]:
    async def handle(
        context: Any, parameters: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(parameters.uri)
        try:
            text = await store.run(lambda memory: read_resource(uri, memory, tools))
        except Exception as error:  # noqa: BLE001 - as above
            raise MCPError(_code(error), error_text(error, "A resource")) from None
        contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
        return types.ReadResourceResult(contents=[contents])

    return handle


def _get_prompt(
    store: StoreRunner, tools: Mapping[str, AgentTool]
) -> Callable[..., Awaitable[types.GetPromptResult]]:
    async def handle(
        context: Any, parameters: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        name, given, recall = parameters.name, parameters.arguments or {}, tools["memory_recall"]
        try:
            text = await store.run(lambda memory: write_prompt(name, given, memory, recall))
        except Exception as error:  # noqa: BLE001 - as above
            raise MCPError(_code(error), error_text(error, f"The prompt {name}")) from None
        return types.GetPromptResult(
            messages=[types.PromptMessage(role="user", content=text_content(text))]
        )

    return handle


def _code(error: Exception) -> int:
    return types.INVALID_PARAMS if isinstance(error, TrivetError) else types.INTERNAL_ERROR


def text_content(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def read_resource(uri: str, memory: Trivet, tools: dict[str, AgentTool]) -> str:
    if uri == STATS_URI:
        return call(memory, tools["memory_stats"], {}).text
    if uri.startswith(MEMORY_PREFIX):
        return call(memory, tools["memory_get"], {"id": uri.removeprefix(MEMORY_PREFIX)}).text
    raise NotFound(f"Unknown resource {uri}. Available: {STATS_URI}, {MEMORY_TEMPLATE}.")


ROOTS_TIMEOUT_SECONDS = 2.0


async def client_folder(session: ServerSession) -> Path:
    """Return the client's first root, or the working folder.

    Asked before each search, because the user may open another folder.
    """
    capabilities = session.client_capabilities
    if capabilities is None or capabilities.roots is None or not session.can_send_request:
        return Path.cwd()
    found = types.ListRootsResult(roots=[])
    with anyio.move_on_after(ROOTS_TIMEOUT_SECONDS):
        try:
            found = await session.send_request(types.ListRootsRequest(), types.ListRootsResult)
        except MCPError:  # it offers roots but refuses to list them
            return Path.cwd()
    folders = [folder for root in found.roots if (folder := _folder(str(root.uri))) is not None]
    return folders[0] if folders else Path.cwd()


def _folder(uri: str) -> Path | None:
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    folder = Path(unquote(parts.path))
    return folder if folder.is_dir() else None
