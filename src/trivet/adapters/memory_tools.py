"""The memory tools for a framework's agent: those of `trivet mcp`, called in this process instead of over MCP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trivet.adapters.shared import run_in_thread
from trivet.errors import InvalidInput, TrivetError
from trivet.serve.failures import public_message
from trivet.serve.mcp.tools import AgentTool, agent_tools, call
from trivet.trivet import Trivet

# What most agents need. The list is paid for in every request to a model, so the other tools are for who names them.
DEFAULT_TOOLS = ("memory_store", "memory_recall", "memory_get", "memory_update", "memory_delete")


class ToolError(Exception):
    """What the model should know about a call that failed, so that it can call again."""


def select_tools(memory: Trivet, names: Sequence[str]) -> list[AgentTool]:
    """The tools of these names, in this order. None of them shows what is sensitive."""
    categories = () if memory.server else memory.settings.categories  # a server has its own
    tools = agent_tools(categories=categories)
    if unknown := [name for name in names if name not in tools]:
        raise InvalidInput(f"tools: there is no {', '.join(unknown)}. There are: {', '.join(tools)}.")
    return [tools[name] for name in names]


async def call_tool(memory: Trivet, tool: AgentTool, arguments: Mapping[str, Any]) -> str:
    """The text for the model. What is wrong is raised as `ToolError`, for each framework to tell it in its own way."""
    try:
        return (await run_in_thread(lambda: call(memory, tool, arguments))).text
    except TrivetError as error:
        raise ToolError(public_message(error)) from None
