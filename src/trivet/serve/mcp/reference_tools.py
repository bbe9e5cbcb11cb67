"""The nine tools of @modelcontextprotocol/server-memory 2026.8.31, with its names and texts.

`scripts/compare_reference_memory.py` compares both servers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from trivet import __version__
from trivet.errors import InvalidInput
from trivet.serve.mcp.reference_graph import Added, Deleted, Entity, KnowledgeGraph, Relation

Schema = dict[str, Any]
GRAPH_URI = "memory://knowledge-graph"
DIALECT = "http://json-schema.org/draft-07/schema#"


class CreateEntities(msgspec.Struct):
    entities: list[Entity]


class Relations(msgspec.Struct):
    relations: list[Relation]


class AddObservations(msgspec.Struct):
    observations: list[Added]


class DeleteEntities(msgspec.Struct, rename="camel"):
    entity_names: list[str]


class DeleteObservations(msgspec.Struct):
    deletions: list[Deleted]


class ReadGraph(msgspec.Struct):
    pass


class SearchNodes(msgspec.Struct):
    query: str


class OpenNodes(msgspec.Struct):
    names: list[str]


class Reply(msgspec.Struct, frozen=True):
    text: str
    structured: dict[str, Any]


class ReferenceTool(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    description: str
    arguments: Schema
    results: Schema
    request: type[msgspec.Struct]
    act: Callable[[KnowledgeGraph, Any], Reply]
    reads: bool = False
    deletes: bool = False

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").title()

    def listed(self) -> Schema:
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": {"$schema": DIALECT, **_arguments(self.arguments)},
            "outputSchema": {"$schema": DIALECT, **_closed(_object(self.results))},
            "annotations": {
                "readOnlyHint": self.reads,
                "destructiveHint": self.deletes,
                "idempotentHint": self.reads or self.deletes,
                "openWorldHint": False,
            },
        }


def call(graph: KnowledgeGraph, tool: ReferenceTool, arguments: Mapping[str, Any]) -> Reply:
    """Call the tool, ignoring unknown arguments like the reference server."""
    try:
        request = msgspec.convert(arguments, type=tool.request)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"Invalid arguments for tool {tool.name}: {error}") from None
    return tool.act(graph, request)


def as_text(value: Any) -> str:
    """Return what JSON.stringify(value, null, 2) writes."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def _found(value: Any) -> Reply:
    shown = msgspec.to_builtins(value)
    return Reply(as_text(shown), shown)


def _listed(name: str, values: Any) -> Reply:
    shown = msgspec.to_builtins(values)
    return Reply(as_text(shown), {name: shown})


def _added(graph: KnowledgeGraph, request: AddObservations) -> Reply:
    added = graph.add_observations(request.observations)
    return _listed(
        "results", [{"entityName": name, "addedObservations": texts} for name, texts in added]
    )


def _deleted(kind: str) -> Reply:
    message = f"{kind} deleted successfully"
    return Reply(message, {"success": True, "message": message})


def _delete_entities(graph: KnowledgeGraph, request: DeleteEntities) -> Reply:
    graph.delete_entities(request.entity_names)
    return _deleted("Entities")


def _delete_observations(graph: KnowledgeGraph, request: DeleteObservations) -> Reply:
    graph.delete_observations(request.deletions)
    return _deleted("Observations")


def _delete_relations(graph: KnowledgeGraph, request: Relations) -> Reply:
    graph.delete_relations(request.relations)
    return _deleted("Relations")


def _string(description: str = "") -> Schema:
    return {"type": "string", **({"description": description} if description else {})}


def _list(items: Schema, description: str = "") -> Schema:
    return {
        "type": "array",
        "items": items,
        **({"description": description} if description else {}),
    }


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _arguments(properties: Schema) -> Schema:
    return _object(properties) if properties else {"type": "object", "properties": {}}


def _closed(schema: Schema) -> Schema:
    closed = {
        name: _closed(value) if isinstance(value, dict) else value for name, value in schema.items()
    }
    return {**closed, "additionalProperties": False} if schema.get("type") == "object" else closed


ENTITY = _object(
    {
        "name": _string("The name of the entity"),
        "entityType": _string("The type of the entity"),
        "observations": _list(
            _string(), "An array of observation contents associated with the entity"
        ),
    }
)
RELATION = _object(
    {
        "from": _string("The name of the entity where the relation starts"),
        "to": _string("The name of the entity where the relation ends"),
        "relationType": _string("The type of the relation"),
    }
)
ADDITION = _object(
    {
        "entityName": _string("The name of the entity to add the observations to"),
        "contents": _list(_string(), "An array of observation contents to add"),
    }
)
ADDED = _object({"entityName": _string(), "addedObservations": _list(_string())})
DELETION = _object(
    {
        "entityName": _string("The name of the entity containing the observations"),
        "observations": _list(_string(), "An array of observations to delete"),
    }
)
DONE: Schema = {"success": {"type": "boolean"}, "message": _string()}
GRAPH: Schema = {"entities": _list(ENTITY), "relations": _list(RELATION)}

TOOLS: Mapping[str, ReferenceTool] = {
    tool.name: tool
    for tool in (
        ReferenceTool(
            name="create_entities",
            description="Create multiple new entities in the knowledge graph",
            arguments={"entities": _list(ENTITY)},
            results={"entities": _list(ENTITY)},
            request=CreateEntities,
            act=lambda graph, request: _listed("entities", graph.create_entities(request.entities)),
        ),
        ReferenceTool(
            name="create_relations",
            description="Create multiple new relations between entities in the knowledge graph. "
            "Relations should be in active voice",
            arguments={"relations": _list(RELATION)},
            results={"relations": _list(RELATION)},
            request=Relations,
            act=lambda graph, request: _listed(
                "relations", graph.create_relations(request.relations)
            ),
        ),
        ReferenceTool(
            name="add_observations",
            description="Add new observations to existing entities in the knowledge graph",
            arguments={"observations": _list(ADDITION)},
            results={"results": _list(ADDED)},
            request=AddObservations,
            act=_added,
        ),
        ReferenceTool(
            name="delete_entities",
            description="Delete multiple entities and their associated relations from the "
            "knowledge graph",
            arguments={"entityNames": _list(_string(), "An array of entity names to delete")},
            results=DONE,
            request=DeleteEntities,
            act=_delete_entities,
            deletes=True,
        ),
        ReferenceTool(
            name="delete_observations",
            description="Delete specific observations from entities in the knowledge graph",
            arguments={"deletions": _list(DELETION)},
            results=DONE,
            request=DeleteObservations,
            act=_delete_observations,
            deletes=True,
        ),
        ReferenceTool(
            name="delete_relations",
            description="Delete multiple relations from the knowledge graph",
            arguments={"relations": _list(RELATION, "An array of relations to delete")},
            results=DONE,
            request=Relations,
            act=_delete_relations,
            deletes=True,
        ),
        ReferenceTool(
            name="read_graph",
            description="Read the entire knowledge graph",
            arguments={},
            results=GRAPH,
            request=ReadGraph,
            act=lambda graph, request: _found(graph.read()),
            reads=True,
        ),
        ReferenceTool(
            name="search_nodes",
            description="Search for nodes in the knowledge graph based on a query",
            arguments={
                "query": _string(
                    "The search query to match against entity names, types, and observation content"
                )
            },
            results=GRAPH,
            request=SearchNodes,
            act=lambda graph, request: _found(graph.search(request.query)),
            reads=True,
        ),
        ReferenceTool(
            name="open_nodes",
            description="Open specific nodes in the knowledge graph by their names",
            arguments={"names": _list(_string(), "An array of entity names to retrieve")},
            results=GRAPH,
            request=OpenNodes,
            act=lambda graph, request: _found(graph.open(request.names)),
            reads=True,
        ),
    )
}

RESOURCE: Schema = {
    "uri": GRAPH_URI,
    "name": "knowledge-graph",
    "title": "Knowledge Graph",
    "description": "The full knowledge graph with all entities and relations",
    "mimeType": "application/json",
}


def listings() -> Mapping[str, Schema]:
    return {
        "ping": {},
        "tools/list": {"tools": [tool.listed() for tool in TOOLS.values()]},
        "resources/list": {"resources": [RESOURCE]},
        "resources/templates/list": {"resourceTemplates": []},
    }


def introduction(version: str) -> Schema:
    return {
        "protocolVersion": version,
        "capabilities": {
            "resources": {"listChanged": False, "subscribe": True},
            "tools": {"listChanged": False},
        },
        "serverInfo": {
            "name": "memory-server",
            "title": "Trivet as reference memory",
            "version": __version__,
        },
    }
