"""Triples by a language model: statements of memories on how concepts are connected, read in the background."""
