"""Pydantic AI: Trivet's memory tools as a toolset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import FunctionToolset, Tool
from pydantic_ai.exceptions import ToolFailed

from trivet.adapters.shared import DEFAULT_TOOLS, ToolError, call_tool, select_tools
from trivet.serve.mcp.listings import INSTRUCTIONS
from trivet.serve.mcp.tools import AgentTool
from trivet.trivet import Trivet

TOOLS_IN_INSTRUCTIONS = {"memory_store", "memory_recall"}


def memory_toolset(
    memory: Trivet,
    tools: Sequence[str] = DEFAULT_TOOLS,
    *,
    instructions: bool = True,
    id: str = "trivet",
) -> FunctionToolset[Any]:
    """Return the tools of `trivet mcp`, called in this process.

    Args:
        memory: The store; the caller closes it.
        tools: Tool names from docs/mcp.md, such as `memory_recall`.
        instructions: Tell the model when to recall and store, if it has both tools.
        id: The toolset's name, which durable execution needs.
    """
    made = [_tool(memory, tool) for tool in select_tools(memory, tools)]
    guidance = INSTRUCTIONS if instructions and set(tools) >= TOOLS_IN_INSTRUCTIONS else None
    return FunctionToolset(made, id=id, instructions=guidance)


def _tool(memory: Trivet, tool: AgentTool) -> Tool[Any]:
    async def invoke(**arguments: Any) -> str:
        try:
            return await call_tool(memory, tool, arguments)
        except ToolError as error:
            # Not ModelRetry: it would end the run if the model fails twice.
            raise ToolFailed(str(error)) from None

    return Tool.from_schema(invoke, tool.name, tool.description, tool.input_schema())
