"""Tunes recall on the user's own store: probes from its memories, cross-validation, a change that can be undone."""
