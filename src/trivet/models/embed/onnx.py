"""An embedder over ONNX files on disk: the bundled model, or any folder that `folder.py` can describe."""

import json
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trivet.errors import EmbedderError
from trivet.models.embed.base import Vectors, checked
from trivet.models.embed.runtime import Pooling, Runtime

MODELS = Path(__file__).resolve().parents[1] / "weights"
STOCK = MODELS / "minilm"
OURS = MODELS / "embedder"
HASH_LENGTH = 12


@dataclass(frozen=True, slots=True)
class OnnxFiles:
    """Everything needed to run a model from disk. `dimension` None means: ask the model."""

    identity: str
    model: Path
    tokenizer: Path
    max_tokens: int
    dimension: int | None = None
    pooling: Pooling = "mean"
    query_prompt: str = ""
    document_prompt: str = ""


class OnnxEmbedder:
    """Costs nothing until its first use; then opens the model once and keeps it."""

    local = True

    def __init__(self, files: OnnxFiles) -> None:
        self.identity = files.identity
        self._files = files
        self._dimension = files.dimension
        self._opened: Runtime | None = None
        self._opening = threading.Lock()

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            self._dimension = len(self.embed_query("dimension"))
        return self._dimension

    @property
    def window(self) -> int:
        runtime = self._runtime()
        prompt = self._files.document_prompt
        return runtime.window - (runtime.count(prompt) if prompt else 0)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        rows = self._rows([self._files.document_prompt + text for text in texts])
        return checked(np.stack(rows), len(texts), self._dimension, self.identity)

    def embed_query(self, text: str) -> Vectors:
        row = self._runtime().vector(self._files.query_prompt + text)
        vector: Vectors = checked(row[np.newaxis], 1, self._dimension, self.identity)[0]
        return vector

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        rows = self._rows([self._files.query_prompt + text for text in texts])
        return checked(np.stack(rows), len(texts), self._dimension, self.identity)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        runtime = self._runtime()
        return [runtime.count(text) for text in texts]

    def _rows(self, texts: Sequence[str]) -> list[Vectors]:
        runtime = self._runtime()
        workers = min(runtime.workers, len(texts))
        if workers == 1:
            return [runtime.vector(text) for text in texts]
        with ThreadPoolExecutor(workers, thread_name_prefix="trivet-embed") as pool:
            rows: Iterable[Vectors] = pool.map(runtime.vector, texts)
            return list(rows)

    def _runtime(self) -> Runtime:
        with self._opening:
            if self._opened is None:
                files = self._files
                self._opened = Runtime(files.model, files.tokenizer, files.max_tokens, files.pooling)
            return self._opened


def described(folder: Path) -> OnnxFiles:
    """The files of a folder in the bundled layout, where model.json says what is inside."""
    try:
        description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        return OnnxFiles(
            identity=f"{description['name']}/{description['sha256']['model.onnx'][:HASH_LENGTH]}",
            model=folder / "model.onnx",
            tokenizer=folder / "tokenizer.json",
            max_tokens=description["max_tokens"],
            dimension=description["dimension"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EmbedderError(
            f"{folder / 'model.json'} cannot be used ({error!r}): is the installation whole?"
        ) from error


def bundled() -> OnnxEmbedder:
    """Our own model, which comes with Trivet."""
    return OnnxEmbedder(described(OURS))


def stock() -> OnnxEmbedder:
    """all-MiniLM-L6-v2 as its authors trained it."""
    return OnnxEmbedder(described(STOCK))
