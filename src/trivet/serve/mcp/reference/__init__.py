"""The tools of the MCP reference memory server over a Trivet store: `trivet mcp --as reference-memory`."""
