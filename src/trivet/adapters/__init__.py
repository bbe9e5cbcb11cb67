"""Adapters for agent frameworks, one module each (docs/frameworks.md).

A module imports only its framework, which `pip install 'trivet[langgraph]'` and so on install.
"""
