"""MCP server: an agent's tools, resources and prompts over standard streams or HTTP."""
