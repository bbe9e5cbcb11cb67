"""The server: every operation of the contract over HTTP, and the agent's tools over MCP, on one port."""
