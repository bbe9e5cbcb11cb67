"""Pydantic AI: Trivet's memory tools as a toolset.

from pydantic_ai import Agent
from trivet import Trivet
from trivet.adapters.pydantic_ai import memory_toolset

agent = Agent("openai:gpt-5", toolsets=[memory_toolset(Trivet.open())])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import FunctionToolset, Tool
from pydantic_ai.exceptions import ToolFailed

from trivet.adapters.shared import DEFAULT_TOOLS, ToolError, call_tool, select_tools
from trivet.serve.mcp.listings import INSTRUCTIONS
from trivet.serve.mcp.tools import AgentTool
from trivet.trivet import Trivet

# The tools that the instructions name.
TOOLS_IN_INSTRUCTIONS = {"memory_store", "memory_recall"}


def memory_toolset(
    memory: Trivet,
    tools: Sequence[str] = DEFAULT_TOOLS,
    *,
    instructions: bool = True,
    id: str = "trivet",
) -> FunctionToolset[Any]:
    """The tools of `trivet mcp` for an agent, called in this process.

    :param memory: The store, which is closed by whoever opened it.
    :param tools: The tools by their names in docs/mcp.md, such as `memory_recall`.
    :param instructions: Tell the model when to recall and when to store, if it has both tools.
    :param id: The toolset's name, which durable execution needs.
    """
    made = [_tool(memory, tool) for tool in select_tools(memory, tools)]
    told = INSTRUCTIONS if instructions and set(tools) >= TOOLS_IN_INSTRUCTIONS else None
    return FunctionToolset(made, id=id, instructions=told)


def _tool(memory: Trivet, tool: AgentTool) -> Tool[Any]:
    async def invoke(**arguments: Any) -> str:
        try:
            return await call_tool(memory, tool, arguments)
        except ToolError as error:
            # Not ModelRetry: a model that errs twice would end the run.
            raise ToolFailed(str(error)) from None

    return Tool.from_schema(invoke, tool.name, tool.description, tool.input_schema())
