"""The tools say what the contract says: names, defaults, bounds and texts come from one place."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from support.mcp_agent import Agent
from trivet import Trivet, contract
from trivet.serve.mcp.tools import TOOLS, AgentTool, agent_tools

OPERATION = {
    "memory_store": "remember",
    "memory_recall": "recall",
    "memory_get": "get",
    "memory_list": "list",
    "memory_update": "edit",
    "memory_delete": "forget",
    "memory_link": "link",
    "memory_why": "why_not",
    "memory_feedback": "feedback",
    "memory_stats": "stats",
}


def test_the_tools_are_these(memory: Agent) -> None:
    assert list(memory.tools()) == list(OPERATION)


@pytest.mark.parametrize("name", OPERATION)
def test_each_input_is_the_contracts(memory: Agent, name: str) -> None:
    expected = json.loads(json.dumps(contract.json_schema(contract.BY_NAME[OPERATION[name]].request)))
    served: dict[str, Any] = memory.tools()[name].input_schema
    added = {"memory_link": {"remove"}}.get(name, set())
    assert set(served["properties"]) - added == set(expected["properties"]) - {"reveal"}
    for field in set(expected["properties"]) - {"reveal"}:
        assert served["properties"][field] == expected["properties"][field], field
    assert sorted(served["required"]) == sorted(expected["required"])
    assert served["additionalProperties"] is False


@pytest.mark.parametrize("name", OPERATION)
def test_each_description_and_hint_is_the_contracts(memory: Agent, name: str) -> None:
    operation = contract.BY_NAME[OPERATION[name]]
    tool = memory.tools()[name]
    assert (tool.description or "").startswith(operation.summary)
    assert tool.annotations is not None
    assert tool.annotations.read_only_hint == operation.read_only
    assert tool.annotations.destructive_hint == operation.destructive
    assert tool.annotations.idempotent_hint == operation.idempotent
    assert tool.annotations.open_world_hint is False


def test_every_schema_is_valid(memory: Agent) -> None:
    for tool in memory.tools().values():
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tool.output_schema is not None
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        assert tool.output_schema["type"] == "object"


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_facade_takes_what_the_tool_takes(tool: AgentTool) -> None:
    taken = set(inspect.signature(getattr(Trivet, tool.operation.name)).parameters) - {"self"}
    assert set(tool.operation.request.__struct_fields__) == taken


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


def test_every_tool_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "mcp.md").read_text()
    assert re.findall(r"^\| `(memory_\w+)` \|", page, re.MULTILINE) == list(OPERATION)
