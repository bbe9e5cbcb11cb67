"""An OpenAI Agents SDK agent that continues its conversation, with a scripted model.

pip install 'trivet[openai-agents]'
python examples/openai_agents_session.py
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message, function_call

from trivet import Trivet
from trivet.adapters.openai_agents import TrivetSession, memory_tools

# The model's turns: it calls a tool, sees the result, and answers.
MONDAY = [
    [
        function_call(
            "memory_store",
            {"content": "The staging database listens on port 6543."},
            call_id="call_1",
        )
    ],
    [assistant_message("I will remember that.")],
]
TUESDAY = [
    [function_call("memory_recall", {"query": "port of the staging database"}, call_id="call_2")],
    [assistant_message("Staging listens on port 6543.")],
]


async def talk(file: Path, said: str, script: list[list[object]]) -> None:
    with Trivet.open(file) as memory:  # Each conversation may run in another process.
        agent = Agent(name="Assistant", model=ScriptedModel(script), tools=memory_tools(memory))
        session = TrivetSession("ana", memory)
        result = await Runner.run(
            agent, said, session=session, run_config=RunConfig(tracing_disabled=True)
        )
        print(f"{said} -> {result.final_output}")
        print(f"  the conversation has {len(await session.get_items())} items")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "memory.db"
        asyncio.run(talk(file, "Staging moved to port 6543.", MONDAY))
        asyncio.run(talk(file, "Which port has staging?", TUESDAY))


if __name__ == "__main__":
    main()
