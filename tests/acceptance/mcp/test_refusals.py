"""Bad input is refused in the contract's words, writes nothing and leaves the server running."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from support.mcp_agent import Agent

UNKNOWN_ID = "00000000-0000-7000-8000-000000000000"

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("memory_store", {}, "content"),
    ("memory_store", {"content": ""}, "content"),
    ("memory_store", {"content": "   "}, "content: the text is empty"),
    ("memory_store", {"content": 7}, "content: expected str, got int"),
    ("memory_store", {"content": None}, "content"),
    ("memory_store", {"content": "x" * 40_000}, "Split it"),
    ("memory_store", {"content": "nul \x00 inside"}, "NUL"),
    ("memory_store", {"content": "x", "importance": 1.5}, "importance: expected float <= 1.0"),
    ("memory_store", {"content": "x", "importance": "high"}, "importance"),
    ("memory_store", {"content": "x", "tags": "one"}, "tags: expected array"),
    ("memory_store", {"content": "x", "tags": ["t"] * 51}, "tags"),
    ("memory_store", {"content": "x", "category": "nonsense"}, "is not one of"),
    ("memory_store", {"content": "x", "scope": "a//b"}, "scope"),
    ("memory_store", {"content": "x", "id": "not-a-uuid"}, "id"),
    ("memory_store", {"content": "x", "created_at": "someday"}, "created_at"),
    ("memory_store", {"content": "x", "contents": "y"}, "unknown field `contents`"),
    ("memory_store", {"content": "x", "self": "y"}, "unknown field `self`"),
    ("memory_recall", {}, "query"),
    ("memory_recall", {"query": "x", "limit": 0}, "limit: expected int >= 1"),
    ("memory_recall", {"query": "x", "limit": 101}, "limit: expected int <= 100"),
    ("memory_recall", {"query": "x", "limit": 2.5}, "limit"),
    ("memory_recall", {"query": "x", "limit": True}, "limit"),
    ("memory_recall", {"query": "x", "sort": "random"}, "sort"),
    ("memory_recall", {"query": "x", "recipe": "magic(1)"}, "magic"),
    ("memory_recall", {"query": "x", "topk": 3}, "Known fields: "),
    ("memory_recall", {"query": "x", "reveal": True}, "TRIVET_MCP_REVEAL=1"),
    ("memory_get", {"id": UNKNOWN_ID}, UNKNOWN_ID),
    ("memory_get", {"id": "x" * 36}, "is not a UUID"),
    ("memory_get", {"id": UNKNOWN_ID, "reveal": False}, "TRIVET_MCP_REVEAL=1"),
    ("memory_list", {"limit": 5000}, "limit"),
    ("memory_list", {"state": ["lost"]}, "state"),
    ("memory_update", {"id": UNKNOWN_ID, "content": "x"}, UNKNOWN_ID),
    ("memory_update", {"id": UNKNOWN_ID, "content": None}, "content"),
    ("memory_update", {"content": "x"}, "id"),
    ("memory_update", {"id": UNKNOWN_ID, "sensitive": False}, "TRIVET_MCP_REVEAL=1"),
    ("memory_delete", {"id": UNKNOWN_ID}, UNKNOWN_ID),
    ("memory_link", {"source": UNKNOWN_ID, "kind": "supersedes", "target": UNKNOWN_ID}, "itself"),
    ("memory_link", {"source": UNKNOWN_ID, "kind": "hates", "target": UNKNOWN_ID}, "kind"),
    ("memory_link", {"source": UNKNOWN_ID, "kind": "part-of"}, "target"),
    ("memory_why", {"query": "x"}, "id"),
    ("memory_stats", {"verbose": True}, "unknown field `verbose`"),
]


@pytest.mark.parametrize(("name", "arguments", "taught"), REFUSED)
def test_bad_input_is_refused_with_advice(
    memory: Agent, name: str, arguments: dict[str, Any], taught: str
) -> None:
    message = memory.refused(name, **arguments)
    assert taught in message
    assert "Traceback" not in message


def test_nothing_was_written_and_the_server_runs(memory: Agent) -> None:
    assert memory.done("memory_stats")["memories"].get("active", 0) == 0
    memory.done("memory_store", content="Still here.")


def test_unknown_tool_is_refused_with_the_known_ones(memory: Agent) -> None:
    with pytest.raises(MCPError, match="memory_recall"):
        memory.call("memory_search", query="x")


def test_unknown_resources_and_prompts_are_refused(memory: Agent) -> None:
    for uri in (
        "trivet://nothing",
        f"trivet://memory/{UNKNOWN_ID}",
        "trivet://memory/../x",
        "file:///etc/passwd",
    ):
        with pytest.raises(MCPError):
            memory.ask(memory.session.read_resource, uri)
    for name, arguments in (
        ("forget", {}),
        ("recall", {}),
        ("recall", {"query": " "}),
        ("remember", {"x": "y"}),
    ):
        with pytest.raises(MCPError):
            memory.ask(memory.session.get_prompt, name, arguments)


def test_conflict_is_reported(memory: Agent) -> None:
    id = memory.done("memory_store", content="Revised twice.")["id"]
    memory.done("memory_update", id=id, content="Revised once more.")
    assert "revision 2" in memory.refused("memory_update", id=id, content="Late.", if_revision=1)
