"""Adapters for agent frameworks, one module each (docs/frameworks.md)."""
