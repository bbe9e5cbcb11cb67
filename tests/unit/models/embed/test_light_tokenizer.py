"""The first query is tokenized without loading the full tokenizer, with identical tokens."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trivet.errors import EmbedderError
from trivet.models import WEIGHTS
from trivet.models import onnx as tokens
from trivet.models.embed.onnx import OnnxEmbedder, described
from trivet.models.onnx import open_tokenizer
from trivet.models.vocabulary import FRAME, LONGEST_TEXT, tokenizer_of

OURS = WEIGHTS / "embedder"
# Typical queries, and texts that hit every branch of this tokenizer's split pattern.
WORDS = (
    "who's",
    "PgBouncer",
    "HB-2590",
    "tz_name",
    "18:30",
    "naïve",
    "倉庫は",
    "🚚",
    "don't",
    "a\tb",
    "  ",
    "\n",
    "§4.2",
    "x" * 30,
)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=80), st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)))
@example("what about HB-2590 (showing customs status, 212 end of more?")
@example("")
def test_tokens_equal_full_tokenizer(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    quick = tokenizer_of(text, OURS)
    if quick is not None:
        found, whole = quick.encode(text), _whole().encode(text)
        assert (found.ids, found.offsets) == (whole.ids, whole.offsets)


@pytest.mark.parametrize("text", ["what does <mask> do", "w" * 40, "word " * LONGEST_TEXT])
def test_ambiguous_text_needs_full_tokenizer(text: str) -> None:
    assert tokenizer_of(text, OURS) is None
    assert tokenizer_of("what does it do", OURS) is not None


def test_first_query_skips_full_tokenizer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreadable(path: Any) -> Any:
        raise EmbedderError("opened")

    query = "why is PgBouncer at port 6432?"
    embedder = OnnxEmbedder(described(OURS))
    with monkeypatch.context() as patch:
        patch.setattr(tokens, "open_tokenizer", unreadable)
        first = embedder.embed_query(query)
        with pytest.raises(EmbedderError, match="opened"):
            embedder.embed_query(query)
    assert np.array_equal(first, embedder.embed_query(query))


def test_damaged_quick_tokenizer_fails_once(tmp_path: Path) -> None:
    for file in OURS.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / FRAME).unlink()
    (tmp_path / FRAME).write_text("{")
    embedder = OnnxEmbedder(described(tmp_path))
    with pytest.raises(EmbedderError, match="cannot read the tokenizer next to"):
        embedder.embed_query("what does it do")
    assert len(embedder.embed_query("what does it do"))


@cache
def _whole() -> Any:
    return open_tokenizer(OURS / "tokenizer.json")
