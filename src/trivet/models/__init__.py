"""Models: embedders and rerankers, bundled, from a folder or hosted; language models behind a chat endpoint."""

from pathlib import Path

# The folders of the models that come with Trivet.
WEIGHTS = Path(__file__).resolve().parent / "weights"
