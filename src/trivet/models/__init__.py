"""Embedders, rerankers, and language models behind an endpoint."""

from pathlib import Path

WEIGHTS = Path(__file__).resolve().parent / "weights"
