"""Vectors for stores too large to embed: sums of the bundled model's vectors of single words.

Search time does not depend on the vectors' quality but on their similarity, and sums of words are
as similar as texts that share words. Words outside the demo memories (names, tickets, hosts) get
random directions. The model embeds queries as usual.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from unittest.mock import patch
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from texts import words_of_sentences
from trivet.models.embed.onnx import OnnxEmbedder, bundled

Vector = NDArray[np.float32]


@contextmanager
def quick_vectors() -> Iterator[None]:
    """Embed documents this way within the block."""
    with patch.object(OnnxEmbedder, "embed_documents", _embed_documents):
        yield


def _embed_documents(embedder: OnnxEmbedder, texts: Sequence[str]) -> Vector:
    sums = np.stack(
        [np.sum([_of_word(word.strip(".,;:")) for word in text.split()], axis=0) for text in texts]
    )
    return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True), np.float32)


@cache
def _known() -> dict[str, Vector]:
    words = words_of_sentences()
    return dict(zip(words, bundled().embed_queries(words), strict=True))


@lru_cache(200_000)
def _of_word(word: str) -> Vector:
    known = _known().get(word)
    if known is not None:
        return known
    drawn = (
        np.random.default_rng(crc32(word.encode()))
        .standard_normal(bundled().dimension)
        .astype(np.float32)
    )
    return np.asarray(drawn / np.linalg.norm(drawn))
