"""A second real embedder in a local folder, for tests that need two models."""

from pathlib import Path

MINILM = Path(__file__).parents[1] / "models" / "minilm"
SECOND_EMBEDDER = f"folder:{MINILM}"
