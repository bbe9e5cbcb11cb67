"""Triples from a language model: what memories say to hold between concepts, read off the caller's path."""
