"""The vectors every product gets: all-MiniLM-L6-v2, one per text, kept outside the repository."""

from __future__ import annotations

import base64
import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trivet.models.embed.base import Vectors
from trivet.models.embed.registry import load

MODEL = Path(__file__).parents[2] / "tests" / "models" / "minilm"
# Texts per commit, so a stopped run keeps its progress.
AT_ONCE = 200


class KeptVectors:
    """A model whose vectors are cached by text hash, in a file named by its identity."""

    def __init__(self, folder: Path) -> None:
        embedder = load(f"folder:{MODEL}")
        assert embedder is not None, "a folder always names an embedder"
        self.embedder = embedder
        self.dimension = embedder.dimension
        folder.mkdir(parents=True, exist_ok=True)
        self._file = sqlite3.connect(folder / f"{embedder.identity.replace('/', '-')}.db")
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS vectors (text_hash BLOB PRIMARY KEY, vector BLOB NOT NULL)"
        )

    def of(self, texts: Sequence[str]) -> Vectors:
        unknown = [text for text in dict.fromkeys(texts) if self._kept(text) is None]
        for start in range(0, len(unknown), AT_ONCE):
            self._embed(unknown[start : start + AT_ONCE])
        found = [np.frombuffer(self._kept(text) or b"", dtype=np.float32) for text in texts]
        return np.stack(found) if found else np.zeros((0, self.dimension), dtype=np.float32)

    def packed(self, texts: Sequence[str]) -> list[str]:
        return [packed(vector) for vector in self.of(texts)]

    def _kept(self, text: str) -> bytes | None:
        row = self._file.execute(
            "SELECT vector FROM vectors WHERE text_hash = ?", (_hash(text),)
        ).fetchone()
        return row[0] if row else None

    def _embed(self, texts: Sequence[str]) -> None:
        rows = zip(map(_hash, texts), self.embedder.embed_documents(texts), strict=True)
        with self._file:
            self._file.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?)",
                [(key, vector.tobytes()) for key, vector in rows],
            )


def packed(vector: Vectors) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()
