"""Trivet for the frameworks that agents are built with: a module each, which needs that framework and nothing else.

`pip install 'trivet[langgraph]'` and so on bring the framework along; docs/frameworks.md tells what maps to what.
"""
