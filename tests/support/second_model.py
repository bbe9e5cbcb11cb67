"""A second real embedder, in a folder as a user may have one: for moves between models, and what else needs two."""

from pathlib import Path

MINILM = Path(__file__).parents[1] / "models" / "minilm"
SECOND_EMBEDDER = f"folder:{MINILM}"
