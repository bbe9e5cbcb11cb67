"""Reads what other memory systems keep, as lines that `import` understands. One module a system; all only read."""
