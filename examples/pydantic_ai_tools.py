"""A Pydantic AI agent that remembers between conversations, with a scripted model.

pip install 'trivet[pydantic-ai]'
python examples/pydantic_ai_tools.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from pydantic_ai import (
    Agent,
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from trivet import Trivet
from trivet.adapters.pydantic_ai import memory_toolset


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Store statements, look questions up, and return the tool's answer."""
    part = messages[-1].parts[-1]
    if isinstance(part, ToolReturnPart):
        return ModelResponse(parts=[TextPart(str(part.content))])
    assert isinstance(part, UserPromptPart)
    said = str(part.content)
    if said.endswith("?"):
        return ModelResponse(parts=[ToolCallPart("memory_recall", {"query": said})])
    return ModelResponse(parts=[ToolCallPart("memory_store", {"content": said})])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for said in ("The staging database listens on port 6543.", "Which port has staging?"):
            with Trivet.open(
                Path(folder) / "memory.db"
            ) as memory:  # Each conversation may run in another process.
                agent = Agent(FunctionModel(scripted), toolsets=[memory_toolset(memory)])
                print(f"{said}\n{agent.run_sync(said).output}\n")


if __name__ == "__main__":
    main()
