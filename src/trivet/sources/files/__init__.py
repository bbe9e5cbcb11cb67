"""Ingest of files: notes, plain texts, transcripts and chat exports. Start with `ingest.py`."""

from trivet.sources.files.ingestion import drop, ingest
from trivet.sources.files.parts import Ingested, Options

__all__ = ["Ingested", "Options", "drop", "ingest"]
