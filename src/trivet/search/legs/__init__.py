"""Legs: BM25, nearest vectors, and a walk through the concept graph."""
