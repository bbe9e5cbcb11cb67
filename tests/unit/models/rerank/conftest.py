from __future__ import annotations

from pathlib import Path

import pytest

from support.endpoint import Endpoint, Reply, endpoint
from support.store_fixtures import Opened, open_trivet
from support.tiny_reranker import write_reranker
from trivet import Trivet

__all__ = ["Endpoint", "Opened", "Reply", "endpoint", "open_trivet"]

# Word matching ranks the first note first; the tiny reranker prefers the last.
NOTES = ("zebra relay listens quietly", "zebra relay", "the zebra sleeps", "a zebra and an emerald")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_reranker(tmp_path / "tiny")


@pytest.fixture
def reranking(open_trivet: Opened, tiny: Path) -> Trivet:
    """A store of the notes above with the tiny reranker."""
    trivet = open_trivet(rerank=f"folder:{tiny}")
    for note in NOTES:
        trivet.remember(note)
    return trivet
