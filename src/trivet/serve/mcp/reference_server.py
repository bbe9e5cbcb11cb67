"""The reference server's tools on standard streams."""

from __future__ import annotations

import logging
import os
import threading
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import mcp_types as types
import msgspec
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from trivet.common.clock import now
from trivet.errors import Conflict, InvalidInput, NotFound
from trivet.serve.failures import error_text
from trivet.serve.mcp.listings import NO_HANDSHAKE, Handshake
from trivet.serve.mcp.reference_graph import (
    SCOPE,
    Entity,
    KnowledgeGraph,
    Relation,
    entity_rows,
    relation_row,
)
from trivet.serve.mcp.reference_tools import (
    GRAPH_URI,
    TOOLS,
    ReferenceTool,
    Reply,
    as_text,
    call,
    introduction,
    listings,
)
from trivet.serve.mcp.server import StoreRunner, constant_handler, text_content
from trivet.serve.mcp.stdio import serve_on_standard_streams
from trivet.trivet import Trivet


def serve(path: str | None, stream: BinaryIO, greeted: Handshake = NO_HANDSHAKE) -> None:
    serve_on_standard_streams(path, build_server, stream, greeted)


def build_server(store: StoreRunner) -> Server[Any]:
    """Build the server without a transport."""
    handlers, listing = _Handlers(_GraphCalls(store)), listings()
    about = introduction("")["serverInfo"]
    return Server(
        about["name"],
        version=about["version"],
        title=about["title"],
        on_list_tools=constant_handler(types.ListToolsResult.model_validate(listing["tools/list"])),
        on_call_tool=handlers.call_tool,
        on_list_resources=constant_handler(
            types.ListResourcesResult.model_validate(listing["resources/list"])
        ),
        on_list_resource_templates=constant_handler(
            types.ListResourceTemplatesResult.model_validate(listing["resources/templates/list"])
        ),
        on_read_resource=handlers.read,
        on_subscribe_resource=handlers.subscribe,
        on_unsubscribe_resource=handlers.unsubscribe,
    )


class _Handlers:
    """The protocol's requests about tools and the graph as a resource."""

    def __init__(self, graphs: _GraphCalls) -> None:
        self._graphs = graphs
        self._subscribed: set[str] = set()

    async def call_tool(
        self, context: Any, parameters: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = TOOLS.get(parameters.name)
        if tool is None:
            return _refused(f"Tool {parameters.name} not found")
        try:
            reply = await self._graphs.call(tool, parameters.arguments or {})
        except Exception as error:  # noqa: BLE001 - answered, so that other calls go on
            return _refused(error_text(error, tool.name))
        if not tool.reads and GRAPH_URI in self._subscribed:
            await context.session.send_resource_updated(GRAPH_URI)
        return types.CallToolResult(
            content=[text_content(reply.text)], structured_content=reply.structured
        )

    async def read(
        self, context: Any, parameters: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        if str(parameters.uri) != GRAPH_URI:
            raise MCPError(
                types.INVALID_PARAMS,
                f"Unknown resource {parameters.uri}. The only one is {GRAPH_URI}.",
            )
        reply = await self._graphs.call(TOOLS["read_graph"], {})
        contents = types.TextResourceContents(
            uri=GRAPH_URI, mime_type="application/json", text=as_text(reply.structured)
        )
        return types.ReadResourceResult(contents=[contents])

    async def subscribe(
        self, context: Any, parameters: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        self._subscribed.add(str(parameters.uri))
        return types.EmptyResult()

    async def unsubscribe(
        self, context: Any, parameters: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self._subscribed.discard(str(parameters.uri))
        return types.EmptyResult()


class _GraphCalls:
    """Tool calls on the store's graph, one write at a time.

    The first call imports the reference server's file, or a later one if that fails.
    """

    def __init__(self, store: StoreRunner) -> None:
        self._store = store
        self._writing = threading.Lock()
        self._file_imported = False

    async def call(self, tool: ReferenceTool, arguments: Mapping[str, Any]) -> Reply:
        return await self._store.run(
            lambda memory: self._call(memory, tool, arguments), not tool.reads
        )

    def _call(self, memory: Trivet, tool: ReferenceTool, arguments: Mapping[str, Any]) -> Reply:
        if not self._file_imported:
            with self._writing:
                self._import_file(memory)
        if tool.reads:
            return call(KnowledgeGraph(memory), tool, arguments)
        with self._writing:
            return call(KnowledgeGraph(memory), tool, arguments)

    def _import_file(self, memory: Trivet) -> None:
        if not self._file_imported:
            import_memory_file(memory)
            self._file_imported = True


def _refused(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[text_content(text)], is_error=True)


logger = logging.getLogger("trivet.serve")

FILE_VARIABLE = "MEMORY_FILE_PATH"
_NAMESPACE = uuid.UUID("8a2c7f0e-5d0b-5b1c-9a59-0d6f3c7f4c11")


class EntityLine(Entity, tag_field="type", tag="entity"):
    pass


class RelationLine(Relation, frozen=True, tag_field="type", tag="relation"):
    pass


def import_memory_file(memory: Trivet) -> None:
    """Import the file once, if it exists, without changing it.

    A memory records the import, even when deleted, so that a graph emptied by its user stays empty.
    """
    file = Path(os.environ.get(FILE_VARIABLE, "")).expanduser().absolute()
    if FILE_VARIABLE not in os.environ or not file.is_file():
        return
    note = str(uuid.uuid5(_NAMESPACE, str(file)))
    if _is_there(memory, note):
        return
    content = f"The knowledge graph of {file} was taken over at {now()}."
    taken = {"id": note, "scope": SCOPE, "content": content, "title": "Taken over"}
    rows = [{**row, "start_line": line} for line, row in enumerate(_rows(file), 1)]
    try:
        memory.remember_many([taken, *rows])
    except Conflict:  # another process has just imported it
        return
    logger.warning("%s was imported: %d memories.", file, len(rows))


def _is_there(memory: Trivet, id: str) -> bool:
    try:
        memory.get(id)
    except NotFound:
        return False
    return True


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    known: set[str] = set()
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = msgspec.json.decode(line, type=EntityLine | RelationLine)
        except msgspec.DecodeError as error:
            raise InvalidInput(
                f"{file}, line {number} is neither an entity nor a relation ({error}). "
                "Nothing was imported. Fix the line, or remove "
                f"{FILE_VARIABLE} from the agent's configuration."
            ) from None
        if isinstance(found, RelationLine):
            yield relation_row(found)
        elif found.name not in known:
            known.add(found.name)
            yield from entity_rows(found)
