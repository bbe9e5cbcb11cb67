"""Readers of other memory systems, which yield lines for `import`."""
