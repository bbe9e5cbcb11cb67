"""A reranker over the sentence-transformers library, for folders whose weights are not ONNX."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trivet.errors import RerankerError
from trivet.models.embed.base import clean
from trivet.models.rerank.base import checked

# Small enough that the time limit is looked at often, large enough for the library's own batches.
PAIRS_AT_ONCE = 8


class SentenceReranker:
    """Says at once when the library is missing; loads the model at its first use."""

    local = True

    def __init__(self, folder: Path) -> None:
        self.identity = folder.name
        self._folder = folder
        self._library = _library(folder)
        self._opened: Any = None
        self._opening = threading.Lock()

    def score(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        model = self._model()
        scores: list[float] = []
        for start in range(0, len(texts), PAIRS_AT_ONCE):
            if time.monotonic() > deadline:
                raise RerankerError(f"{self.identity} ran out of time")
            pairs = [(clean(query), clean(text)) for text in texts[start : start + PAIRS_AT_ONCE]]
            scores.extend(model.predict(pairs, show_progress_bar=False))
        return checked(scores, len(texts), self.identity)

    def _model(self) -> Any:
        with self._opening:
            if self._opened is None:
                self._opened = self._library.CrossEncoder(str(self._folder), local_files_only=True)
            return self._opened


def _library(folder: Path) -> Any:
    try:
        return importlib.import_module("sentence_transformers")
    except ImportError as error:
        raise RerankerError(
            f"{folder} has no ONNX model that runs by itself, so it needs another package: "
            "pip install 'sentence-transformers>=5'"
        ) from error
