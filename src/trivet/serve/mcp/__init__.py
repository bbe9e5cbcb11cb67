"""MCP: the tools, resources and prompts of an agent, over standard input and output or HTTP."""
