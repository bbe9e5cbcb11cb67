"""A file cache of a local embedder's vectors, for scripts that load the same texts repeatedly."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from trivet.models.embed.base import Vectors
from trivet.models.embed.onnx import OnnxEmbedder


@contextmanager
def keep_vectors(path: Path) -> Iterator[None]:
    """Within the block, a model embeds each text only once for all stores."""
    kept: dict[str, Vectors] = _read(path)
    known, original = len(kept), OnnxEmbedder.embed_documents

    def embed_documents(self: OnnxEmbedder, texts: Sequence[str]) -> Vectors:
        names = [_name(self.identity, text) for text in texts]
        missing = {name: text for name, text in zip(names, texts, strict=True) if name not in kept}
        if missing:
            kept.update(zip(missing, original(self, list(missing.values())), strict=True))
        return np.stack([kept[name] for name in names]) if texts else original(self, texts)

    OnnxEmbedder.embed_documents = embed_documents  # type: ignore[method-assign]
    try:
        yield
    finally:
        OnnxEmbedder.embed_documents = original  # type: ignore[method-assign]
        if len(kept) > known:
            np.savez(
                path,
                names=np.array(list(kept)),
                vectors=np.stack(list(kept.values())).astype(np.float16),
            )


def _read(path: Path) -> dict[str, Vectors]:
    if not path.exists():
        return {}
    with np.load(path) as arrays:
        return dict(
            zip(map(str, arrays["names"]), arrays["vectors"].astype(np.float32), strict=True)
        )


def _name(identity: str, text: str) -> str:
    return hashlib.sha256(f"{identity}\0{text}".encode(errors="replace")).hexdigest()[:32]
