"""The reference server's tools as a server on standard input and output."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, BinaryIO

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from trivet.serve.mcp.greeting import Greeted
from trivet.serve.mcp.reference.graph import KnowledgeGraph
from trivet.serve.mcp.reference.takeover import take_over
from trivet.serve.mcp.reference.tools import (
    GRAPH_URI,
    TOOLS,
    ReferenceTool,
    Reply,
    as_text,
    call,
    introduction,
    listings,
)
from trivet.serve.mcp.server import NOT_GREETED, Memories, always, error_text, serve_on_standard_streams, text_content
from trivet.trivet import Trivet


def serve(path: str | None, stream: BinaryIO, greeted: Greeted = NOT_GREETED) -> None:
    """Goes on with a client that was greeted, until the input ends or a signal comes."""
    serve_on_standard_streams(path, build_server, stream, greeted)


def build_server(store: Memories) -> Server[Any]:
    """The server without a transport."""
    graphs, told, subscribed = _Graphs(store), listings(), set[str]()
    about = introduction("")["serverInfo"]

    async def call_tool(context: Any, parameters: types.CallToolRequestParams) -> types.CallToolResult:
        tool = TOOLS.get(parameters.name)
        if tool is None:
            return _refused(f"Tool {parameters.name} not found")
        try:
            reply = await graphs.call(tool, parameters.arguments or {})
        except Exception as error:  # noqa: BLE001 - one call's failure is told to its caller and ends nothing else
            return _refused(error_text(error, tool.name))
        if not tool.reads and GRAPH_URI in subscribed:
            await context.session.send_resource_updated(GRAPH_URI)
        return types.CallToolResult(content=[text_content(reply.text)], structured_content=reply.structured)

    async def read(context: Any, parameters: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        if str(parameters.uri) != GRAPH_URI:
            raise MCPError(types.INVALID_PARAMS, f"There is nothing at {parameters.uri}. There is: {GRAPH_URI}.")
        reply = await graphs.call(TOOLS["read_graph"], {})
        contents = types.TextResourceContents(
            uri=GRAPH_URI, mime_type="application/json", text=as_text(reply.structured)
        )
        return types.ReadResourceResult(contents=[contents])

    async def subscribe(context: Any, parameters: types.SubscribeRequestParams) -> types.EmptyResult:
        subscribed.add(str(parameters.uri))
        return types.EmptyResult()

    async def unsubscribe(context: Any, parameters: types.UnsubscribeRequestParams) -> types.EmptyResult:
        subscribed.discard(str(parameters.uri))
        return types.EmptyResult()

    return Server(
        about["name"],
        version=about["version"],
        title=about["title"],
        on_list_tools=always(types.ListToolsResult.model_validate(told["tools/list"])),
        on_call_tool=call_tool,
        on_list_resources=always(types.ListResourcesResult.model_validate(told["resources/list"])),
        on_list_resource_templates=always(
            types.ListResourceTemplatesResult.model_validate(told["resources/templates/list"])
        ),
        on_read_resource=read,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
    )


class _Graphs:
    """Runs the tools on the store's graph: one write at a time, for each looks at the graph before it adds to it.

    The first call takes over the reference server's file; one that failed is tried again by the next.
    """

    def __init__(self, store: Memories) -> None:
        self._store = store
        self._writing = threading.Lock()
        self._taken = False

    async def call(self, tool: ReferenceTool, arguments: Mapping[str, Any]) -> Reply:
        return await self._store.run(lambda memory: self._call(memory, tool, arguments), not tool.reads)

    def _call(self, memory: Trivet, tool: ReferenceTool, arguments: Mapping[str, Any]) -> Reply:
        if not self._taken:
            with self._writing:
                self._take(memory)
        if tool.reads:
            return call(KnowledgeGraph(memory), tool, arguments)
        with self._writing:
            return call(KnowledgeGraph(memory), tool, arguments)

    def _take(self, memory: Trivet) -> None:
        if not self._taken:
            take_over(memory)
            self._taken = True


def _refused(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[text_content(text)], is_error=True)
