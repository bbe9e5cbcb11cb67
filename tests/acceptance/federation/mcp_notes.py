"""A small MCP server with a search tool, a failing tool and one that never ends."""

from __future__ import annotations

import time
from typing import Any

from mcp.server.mcpserver import MCPServer

server = MCPServer("notes")


@server.tool()
def search(text: str, most: int) -> dict[str, Any]:
    return {
        "results": [
            {"uri": f"wiki/{text}/{number}", "snippet": f"{text} {number}"}
            for number in range(most)
        ]
    }


@server.tool()
def broken(text: str) -> dict[str, Any]:
    raise RuntimeError("the index is gone")


@server.tool()
def endless(text: str) -> dict[str, Any]:
    time.sleep(1000)
    return {}


if __name__ == "__main__":
    server.run("stdio")
