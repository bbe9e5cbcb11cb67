"""The names of the systems, which the command line needs before it needs them."""

from __future__ import annotations

from typing import Literal

SystemName = Literal["mcp-memory", "claude-memory-mcp", "mem0", "basic-memory", "claude-mem", "agentmemory"]
