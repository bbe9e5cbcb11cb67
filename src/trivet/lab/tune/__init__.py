"""Tuning recall on one's own store: probes from its memories, cross-validation, and a change that can be undone."""
