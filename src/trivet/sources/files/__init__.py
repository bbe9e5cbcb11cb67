"""Files into memories: vaults of notes, texts, transcripts and exports of chats. `run.py` is the one to read first."""

from trivet.sources.files.ingest import drop, ingest
from trivet.sources.files.parts import Ingested, Options

__all__ = ["Ingested", "Options", "drop", "ingest"]
