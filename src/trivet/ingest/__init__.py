"""Files into memories: vaults of notes, texts, transcripts and exports of chats. `run.py` is the one to read first."""

from trivet.ingest.run import drop, ingest
from trivet.ingest.values import Ingested, Options

__all__ = ["Ingested", "Options", "drop", "ingest"]
