"""The tools match the contract in names, defaults, bounds and texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import re2

from support.mcp_agent import Agent, agent
from trivet import contract
from trivet.memory.passages import estimate_tokens
from trivet.serve.mcp.code_tools import CODE_TOOLS
from trivet.serve.mcp.tools import agent_tools

# Upper bound of what a conversation pays for the tool list. Claude Code, Codex, Gemini CLI and
# opencode (all tried) give their model the name, description and arguments of each tool, not its
# result schema.
MOST_TOKENS = 2_450

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
    "code_search",
    "code_symbol",
    "code_related",
]


def test_tool_names(memory: Agent) -> None:
    assert list(memory.tools()) == NAMES


def test_recall_and_store_are_always_loaded(memory: Agent) -> None:
    """Claude Code shows its model other tools only when the model asks for them by name."""
    shown = {
        name
        for name, tool in memory.tools().items()
        if (tool.meta or {}).get("anthropic/alwaysLoad")
    }
    assert shown == {"memory_store", "memory_recall"}


def test_every_schema_is_valid(memory: Agent) -> None:
    for tool in memory.tools().values():
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        if tool.name in CODE_TOOLS:  # they answer in text only
            continue
        assert tool.output_schema is not None
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        assert tool.output_schema["type"] == "object"


def test_reveal_is_offered_only_where_allowed() -> None:
    offered = {
        name
        for name, tool in agent_tools(reveal=True).items()
        if "reveal" in tool.input_schema()["properties"]
    }
    assert offered == {"memory_recall", "memory_get", "memory_list", "memory_why"}
    assert not any("reveal" in tool.input_schema()["properties"] for tool in agent_tools().values())


def test_request_without_reveal_is_otherwise_the_same() -> None:
    smaller = agent_tools()["memory_recall"].request
    assert msgspec.structs.asdict(contract.check(smaller, {"query": "q"})) == {
        name: value
        for name, value in msgspec.structs.asdict(
            contract.check(contract.RecallRequest, {"query": "q"})
        ).items()
        if name != "reveal"
    }


def test_tool_list_is_short(memory: Agent) -> None:
    read_by_model = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        for tool in memory.tools().values()
    ]
    assert estimate_tokens(json.dumps(read_by_model, separators=(",", ":"))) <= MOST_TOKENS


def test_every_verb_parameter_is_documented() -> None:
    """Directly, inside `more`, or by name if another tool explains it."""
    for tool in agent_tools(reveal=True).values():
        fields = tool.input_schema()["properties"]
        more = fields.get("more", {}).get("description", "")
        for name in tool.request.__struct_fields__:
            assert (
                name in fields
                or f"{name}:" in more
                or f"{name} (" in more
                or name in more.rpartition(":")[2]
            )


def test_parameters_inside_more_are_bounded_too(memory: Agent) -> None:
    stored = memory.done(
        "memory_store", content="Quinces ripen late.", more={"source": "fruit.md", "start_line": 3}
    )
    assert memory.done("memory_get", id=stored["id"])["source"] == "fruit.md:3-3"
    found = memory.done("memory_recall", query="quinces", more={"source": "other.md"})
    assert found["hits"] == []
    assert (
        "known fields"
        in memory.refused("memory_recall", query="quinces", more={"nonsense": 1}).lower()
    )
    assert "given twice" in memory.refused(
        "memory_recall", query="quinces", limit=1, more={"limit": 2}
    )
    assert "an object" in memory.refused("memory_recall", query="quinces", more="recency")
    assert "stay masked" in memory.refused("memory_recall", query="quinces", more={"reveal": True})


def test_categories_match_the_settings(tmp_path: Path) -> None:
    with agent(tmp_path / "m.db", TRIVET_CATEGORIES="recipes,gardens") as cook:
        description = cook.tools()["memory_store"].input_schema["properties"]["category"][
            "description"
        ]
    assert description == "One of recipes, gardens."


def patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        schema = list(schema.values())
    for inner in schema if isinstance(schema, list) else ():
        yield from patterns(inner)


def test_every_pattern_compiles_without_look_ahead() -> None:
    """Clients in Go or Rust use RE2, and some refuse the whole list for one bad pattern."""
    requests = [
        contract.json_schema(verb.request) for verb in contract.VERBS.values() if verb.routes
    ]
    tools = [
        schema
        for tool in agent_tools().values()
        for schema in (tool.input_schema(), tool.output_schema())
    ]
    found = set(patterns([*requests, *tools]))
    assert found
    for pattern in found:
        re2.compile(pattern)


@pytest.mark.parametrize("scope", ["a/b\n", "a//b", "", "a b"])
def test_pattern_without_look_ahead_still_refuses(memory: Agent, scope: str) -> None:
    assert "scope" in memory.refused("memory_store", content="x", scope=scope)
