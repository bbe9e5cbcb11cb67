"""`trivet mcp --as reference-memory` serves clients of the MCP reference memory server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.mcp_agent import Agent, agent, text
from support.warm_python import warm

URI = "memory://knowledge-graph"
TOOLS = {
    "create_entities": ["entities"],
    "create_relations": ["relations"],
    "add_observations": ["observations"],
    "delete_entities": ["entityNames"],
    "delete_observations": ["deletions"],
    "delete_relations": ["relations"],
    "read_graph": [],
    "search_nodes": ["query"],
    "open_nodes": ["names"],
}
ANA = {"name": "Ana", "entityType": "person", "observations": ["Likes tea."]}
WORKS = {"from": "Ana", "to": "Acme", "relationType": "works_at"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Agent]:
    file = tmp_path / "old.jsonl"
    file.write_text(
        json.dumps({"type": "entity", "name": "Acme", "entityType": "company", "observations": []})
    )
    path = tmp_path / "memory.db"
    program = warm("-m", "trivet.cli", "mcp", "--as", "reference-memory", "--path", str(path))
    with agent(path, program, MEMORY_FILE_PATH=str(file)) as connected:
        yield connected


@pytest.mark.filterwarnings(
    "ignore:resources/subscribe is removed"
)  # in the next version of the protocol
def test_a_conversation(server: Agent) -> None:
    notifications: list[str] = []
    server.session._message_handler = lambda message: _note(notifications, message)
    assert {
        name: list(tool.input_schema["properties"]) for name, tool in server.tools().items()
    } == TOOLS
    created = server.call("create_entities", entities=[ANA], unknown=1)
    assert json.loads(text(created)) == [ANA]
    assert text(created) == json.dumps([ANA], indent=2)
    assert server.done("create_relations", relations=[WORKS]) == {"relations": [WORKS]}
    assert server.done(
        "add_observations",
        observations=[{"entityName": "Ana", "contents": ["Likes tea.", "Écrit"]}],
    ) == {"results": [{"entityName": "Ana", "addedObservations": ["Écrit"]}]}
    acme = {"name": "Acme", "entityType": "company", "observations": []}
    ana = {**ANA, "observations": ["Likes tea.", "Écrit"]}
    graph = {"entities": [acme, ana], "relations": [WORKS]}
    assert server.done("read_graph") == graph
    assert server.done("search_nodes", query="éCRIT") == {"entities": [ana], "relations": [WORKS]}
    assert server.done("open_nodes", names=["Acme", "Nobody"]) == {
        "entities": [acme],
        "relations": [WORKS],
    }
    assert [one.uri for one in server.ask(server.session.list_resources).resources] == [URI]
    [contents] = server.ask(server.session.read_resource, URI).contents
    assert json.loads(contents.text) == graph
    server.ask(server.session.subscribe_resource, URI)
    assert server.done("delete_entities", entityNames=["Ana"]) == {
        "success": True,
        "message": "Entities deleted successfully",
    }
    assert server.done("read_graph") == {"entities": [acme], "relations": []}
    assert notifications == [URI], "a subscriber is notified before the answer to the change"
    assert server.refused(
        "add_observations", observations=[{"entityName": "Ana", "contents": []}]
    ) == ("Entity with name Ana not found")
    assert "entityType" in server.refused("create_entities", entities=[{"name": "A"}])
    assert server.refused("memory_recall", query="x") == "Tool memory_recall not found"


async def _note(notifications: list[str], message: object) -> None:
    if uri := getattr(getattr(message, "params", None), "uri", None):
        notifications.append(str(uri))
