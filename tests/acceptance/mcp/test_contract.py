"""The tools say what the contract says: names, defaults, bounds and texts come from one place."""

from __future__ import annotations

import jsonschema
import msgspec

from support.mcp_agent import Agent
from trivet import contract
from trivet.serve.mcp.tools import agent_tools

NAMES = [
    "memory_store",
    "memory_recall",
    "memory_get",
    "memory_list",
    "memory_update",
    "memory_delete",
    "memory_link",
    "memory_why",
    "memory_feedback",
    "memory_stats",
]


def test_the_tools_are_these(memory: Agent) -> None:
    assert list(memory.tools()) == NAMES


def test_every_schema_is_valid(memory: Agent) -> None:
    for tool in memory.tools().values():
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tool.output_schema is not None
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        assert tool.output_schema["type"] == "object"


def test_reveal_is_offered_only_where_it_is_allowed() -> None:
    offered = {name for name, tool in agent_tools(reveal=True).items() if "reveal" in tool.input_schema()["properties"]}
    assert offered == {"memory_recall", "memory_get", "memory_list", "memory_why"}
    assert not any("reveal" in tool.input_schema()["properties"] for tool in agent_tools().values())


def test_a_request_without_reveal_is_otherwise_the_same() -> None:
    smaller = agent_tools()["memory_recall"].request
    assert msgspec.structs.asdict(contract.check(smaller, {"query": "q"})) == {
        name: value
        for name, value in msgspec.structs.asdict(contract.check(contract.RecallRequest, {"query": "q"})).items()
        if name != "reveal"
    }
