"""Servers: the same tools for agents over any transport."""
