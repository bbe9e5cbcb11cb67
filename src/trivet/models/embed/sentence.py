"""An embedder over the sentence-transformers library, for folders whose weights are not ONNX."""

import importlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trivet.errors import EmbedderError
from trivet.models.embed.base import Vectors, checked, clean

DEFAULT_MAX_TOKENS = 512


class SentenceEmbedder:
    """Says at once when the library is missing; loads the model at its first use."""

    local = True

    def __init__(self, folder: Path, identity: str) -> None:
        self.identity = identity
        self._folder = folder
        self._library = _library(folder)
        self._opened: Any = None
        self._opening = threading.Lock()

    @property
    def dimension(self) -> int:
        return len(self.embed_query("dimension"))

    @property
    def window(self) -> int:
        model = self._model()
        return int(model.max_seq_length or DEFAULT_MAX_TOKENS) - int(model.tokenizer.num_special_tokens_to_add(False))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        rows = self._model().encode_document([clean(text) for text in texts], show_progress_bar=False)
        return checked(rows, len(texts), None, self.identity)

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed_queries([text])[0]
        return vector

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        rows = self._model().encode_query([clean(text) for text in texts], show_progress_bar=False)
        return checked(rows, len(texts), None, self.identity)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        tokenizer = self._model().tokenizer
        return [len(tokenizer.encode(clean(text), add_special_tokens=False)) for text in texts]

    def _model(self) -> Any:
        with self._opening:
            if self._opened is None:
                self._opened = self._library.SentenceTransformer(str(self._folder), local_files_only=True)
            return self._opened


def _library(folder: Path) -> Any:
    try:
        return importlib.import_module("sentence_transformers")
    except ImportError as error:
        raise EmbedderError(
            f"{folder} has no ONNX model that runs by itself, so it needs another package: "
            "pip install 'sentence-transformers>=5'"
        ) from error
