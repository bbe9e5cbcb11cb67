"""HTTP server: verbs, MCP and the browser page on one port."""
