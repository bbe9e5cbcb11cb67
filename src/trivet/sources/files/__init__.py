"""Files into memories: vaults of notes, texts, transcripts and exports of chats. `run.py` is the one to read first."""

from trivet.sources.files.parts import Ingested, Options
from trivet.sources.files.run import drop, ingest

__all__ = ["Ingested", "Options", "drop", "ingest"]
