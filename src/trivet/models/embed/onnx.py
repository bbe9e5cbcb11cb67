"""An embedder over ONNX files: the bundled model, or any folder that `folder.py` supports.

Texts are not batched: dynamic int8 quantization uses one scale per layer input, so a text's vector
would depend on its batch (cosine .991 between alone and in a batch of 64).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from trivet.common.threads import worker_cores
from trivet.errors import EmbedderError
from trivet.models import WEIGHTS
from trivet.models.embed.base import SimilarityBaseline, Vectors, checked
from trivet.models.onnx import HASH_LENGTH, Tokens, input_types, open_session

Pooling = Literal["mean", "cls", "max", "last"]

POOLED_OUTPUTS = ("sentence_embedding", "embedding")
# Below this, waking threads within a text costs as much as it gains (bundled model: 2.0 ms on one
# thread, 1.7 ms on two).
SINGLE_THREAD_BYTES = 64 * 2**20
OURS = WEIGHTS / "embedder"


@dataclass(frozen=True, slots=True)
class OnnxFiles:
    """A model on disk; a `dimension` of None is read from the model."""

    identity: str
    model: Path
    tokenizer: Path
    max_tokens: int
    dimension: int | None = None
    pooling: Pooling = "mean"
    query_prompt: str = ""
    document_prompt: str = ""
    background: SimilarityBaseline | None = None


class OnnxEmbedder:
    """An embedder that opens its model on first use."""

    local = True

    def __init__(self, files: OnnxFiles) -> None:
        self.identity = files.identity
        self.background = files.background
        self._files = files
        self._dimension = files.dimension
        self._opened: Runtime | None = None
        self._opening = threading.Lock()

    def open(self, *, whole: bool = False) -> None:
        """Open what the first query needs; with `whole`, also the full tokenizer."""
        runtime = self._runtime()
        if whole:
            runtime.tokens.open()

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            self._dimension = len(self.embed_query("dimension"))
        return self._dimension

    @property
    def queries_as_documents(self) -> bool:
        return self._files.query_prompt == self._files.document_prompt

    @property
    def window(self) -> int:
        tokens = self._runtime().tokens
        prompt = self._files.document_prompt
        return tokens.window - (tokens.count(prompt) if prompt else 0)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        rows = self._rows([self._files.document_prompt + text for text in texts])
        return checked(np.stack(rows), len(texts), self._dimension, self.identity)

    def embed_query(self, text: str) -> Vectors:
        return self._begun(text)()

    def begun(self, text: str) -> Callable[[], Vectors]:
        """Tokenize the query and return the function that runs the model."""
        if self._opened is None:
            return lambda: self._begun(text)()
        return self._begun(text)

    def _begun(self, text: str) -> Callable[[], Vectors]:
        runtime = self._runtime()
        ids = runtime.tokens.ids(self._files.query_prompt + text)

        def run() -> Vectors:
            vector: Vectors = checked(
                runtime.vector_of(ids)[np.newaxis], 1, self._dimension, self.identity
            )[0]
            return vector

        return run

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        rows = self._rows([self._files.query_prompt + text for text in texts])
        return checked(np.stack(rows), len(texts), self._dimension, self.identity)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        tokens = self._runtime().tokens
        return [tokens.count(text) for text in texts]

    def _rows(self, texts: Sequence[str]) -> list[Vectors]:
        runtime = self._runtime()
        runtime.tokens.open()
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
                self._opened = Runtime(
                    files.model, files.tokenizer, files.max_tokens, files.pooling
                )
            return self._opened


def described(folder: Path) -> OnnxFiles:
    try:
        description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        return OnnxFiles(
            identity=f"{description['name']}/{description['sha256']['model.onnx'][:HASH_LENGTH]}",
            model=folder / "model.onnx",
            tokenizer=folder / "tokenizer.json",
            max_tokens=description["max_tokens"],
            dimension=description["dimension"],
            background=SimilarityBaseline(**description["background"])
            if "background" in description
            else None,
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EmbedderError(
            f"cannot read {folder / 'model.json'} ({error!r}): is the installation complete?"
        ) from error


def bundled() -> OnnxEmbedder:
    return _shared(described(OURS))


@cache
def _shared(files: OnnxFiles) -> OnnxEmbedder:
    """Share the model among the stores of a process: opening takes 0.25 s and 80 MB."""
    return OnnxEmbedder(files)


class Runtime:
    def __init__(self, model: Path, tokenizer: Path, max_tokens: int, pooling: Pooling) -> None:
        threads = 1 if _weight(model) < SINGLE_THREAD_BYTES else worker_cores()
        self.workers = worker_cores() // threads
        self._session = open_session(model, threads)
        self._inputs = input_types(self._session, model)
        self._output = _output_name(self._session)
        self._pooling = pooling
        self.tokens = Tokens(tokenizer, max_tokens)

    def vector(self, text: str) -> Vectors:
        """Return the pooled vector, neither checked nor normalized."""
        return self.vector_of(self.tokens.ids(text))

    def vector_of(self, ids: list[int]) -> Vectors:
        output = self._run(ids)
        vector = pooled(output[0], self._pooling) if output.ndim == 3 else output[0]
        return np.asarray(vector, dtype=np.float32)

    def _run(self, ids: list[int]) -> Any:
        tokens = np.array([ids])
        values = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.zeros_like(tokens),
        }
        feed = {name: values[name].astype(kind, copy=False) for name, kind in self._inputs.items()}
        try:
            return self._session.run([self._output], feed)[0]
        except (
            Exception
        ) as error:  # ONNX Runtime's errors share no public base class, and may quote tokens
            raise EmbedderError(
                f"the ONNX model failed on a text of {len(ids)} tokens ({type(error).__name__})"
            ) from error


def pooled(states: Vectors, pooling: Pooling) -> Vectors:
    vector: Vectors
    match pooling:
        case "mean":
            vector = states.mean(axis=0)
        case "max":
            vector = states.max(axis=0)
        case "cls":
            vector = states[0]
        case "last":
            vector = states[-1]
    return vector


def _weight(model: Path) -> int:
    """Include external data files, named after the model."""
    return sum(path.stat().st_size for path in model.parent.glob(f"{model.name}*"))


def _output_name(session: Any) -> str:
    names: list[str] = [put.name for put in session.get_outputs()]
    return next((name for name in POOLED_OUTPUTS if name in names), names[0])
