"""Coding agents: hooks, capture, and installation into their settings."""
