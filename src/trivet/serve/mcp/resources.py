"""What a client can read by its address: one memory, or the counts of the store."""

from __future__ import annotations

from trivet.errors import NotFound
from trivet.serve.mcp.tools import AgentTool, call
from trivet.trivet import Trivet

STATS_URI = "trivet://stats"
MEMORY_PREFIX = "trivet://memory/"
MEMORY_TEMPLATE = MEMORY_PREFIX + "{id}"


def read_resource(uri: str, memory: Trivet, tools: dict[str, AgentTool]) -> str:
    """The text at an address, with stored words wrapped as in the tools."""
    if uri == STATS_URI:
        return call(memory, tools["memory_stats"], {}).text
    if uri.startswith(MEMORY_PREFIX):
        return call(memory, tools["memory_get"], {"id": uri.removeprefix(MEMORY_PREFIX)}).text
    raise NotFound(f"There is nothing at {uri}. There are: {STATS_URI}, {MEMORY_TEMPLATE}.")
