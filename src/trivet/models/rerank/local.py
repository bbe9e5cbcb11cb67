"""Cross-encoders on disk: bundled, ONNX folders, or the sentence-transformers library.

Pairs run one at a time: padded batches took 1.0 to 2.0 times as long (2 cores, int8, 20 pairs), and
moved a score by up to a third of the scores' deviation.
"""

from __future__ import annotations

import importlib
import json
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from trivet.common.threads import worker_cores
from trivet.errors import RerankerError, TrivetError
from trivet.models import WEIGHTS
from trivet.models.embed.base import clean
from trivet.models.onnx import (
    HASH_LENGTH,
    SharedEmbeddings,
    input_types,
    open_session,
    open_tokenizer,
)
from trivet.models.rerank.registry import PRESETS, Reranker, checked

# Shared by all bundled rerankers (scripts/share_words.py).
SHARED = WEIGHTS / "words"
DEFAULT_MAX_TOKENS = 512
# Fusing additions with layer norms makes long inputs 1.5 times as slow.
WITHOUT = ("SkipLayerNormFusion",)
# A longer query is cut, so that the text has room.
QUERY_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class RerankerFiles:
    identity: str
    model: Path
    tokenizer: Path
    max_tokens: int
    words: str | None = None  # the model's name for the table in weights/words, if it uses that


class OnnxReranker:
    local = True

    def __init__(self, files: RerankerFiles) -> None:
        self.identity = files.identity
        self._files = files
        self._opened: _Pairs | None = None
        self._opening = threading.Lock()

    def open(self) -> None:
        self._pairs()

    def score(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        pairs = self._pairs()
        encoded = pairs.encoded(query, texts)
        order = sorted(range(len(texts)), key=lambda at: -len(encoded[at][0]))

        def run(at: int) -> float:
            if time.monotonic() > deadline:
                raise RerankerError(f"{self.identity} ran out of time")
            return pairs.run(*encoded[at])

        found = dict(zip(order, _mapped(run, order), strict=True))
        return checked([found[at] for at in range(len(texts))], len(texts), self.identity)

    def _pairs(self) -> _Pairs:
        with self._opening:
            if self._opened is None:
                self._opened = _opened(self._files)
            return self._opened


class _Pairs:
    def __init__(self, files: RerankerFiles) -> None:
        self._tokenizer = _shared_tokenizer() if files.words else open_tokenizer(files.tokenizer)
        self._words = SharedEmbeddings(SHARED / "words.npy", files.words) if files.words else None
        self._session = open_session(files.model, threads=1, without=WITHOUT, words=self._words)
        self._inputs = input_types(self._session, files.model)
        self._room = files.max_tokens - self._tokenizer.num_special_tokens_to_add(True)

    def encoded(self, query: str, texts: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        asked = self._tokenizer.encode(clean(query), add_special_tokens=False)
        asked.truncate(int(self._room * QUERY_SHARE))
        room = self._room - len(asked.ids)
        pairs = []
        for text in self._tokenizer.encode_batch(
            [clean(text) for text in texts], add_special_tokens=False
        ):
            text.truncate(room)
            pair = self._tokenizer.post_process(asked, text)
            pairs.append((pair.ids, pair.type_ids))
        return pairs

    def run(self, ids: list[int], segments: list[int]) -> float:
        tokens = np.array([ids])
        values = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.array([segments]),
        }
        feed = {name: values[name].astype(kind, copy=False) for name, kind in self._inputs.items()}
        try:
            output = np.asarray(self._session.run(None, feed)[0], dtype=np.float64).ravel()
        except (
            Exception
        ) as error:  # ONNX Runtime's errors share no public base class, and may quote tokens
            raise RerankerError(
                f"the ONNX model failed on a pair of {len(ids)} tokens ({type(error).__name__})"
            ) from error
        if output.size != 1:
            raise RerankerError(
                f"the ONNX model returns {output.size} numbers per pair; "
                "a reranker returns one score"
            )
        return float(output[0])


@cache
def _shared_tokenizer() -> Any:
    """Share the tokenizer among all bundled rerankers: it takes 6 MB."""
    return open_tokenizer(SHARED / "tokenizer.json")


def _opened(files: RerankerFiles) -> _Pairs:
    try:
        return _Pairs(files)
    except RerankerError:
        raise
    except TrivetError as error:
        raise RerankerError(str(error)) from error


def _mapped(run: Any, order: Sequence[int]) -> list[float]:
    if min(worker_cores(), len(order)) <= 1:
        return [run(at) for at in order]
    return list(_pool(os.getpid()).map(run, order))


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Share the threads, because each text being read takes tens of megabytes.

    Keyed by process id: a forked process has none of its parent's threads.
    """
    return ThreadPoolExecutor(worker_cores(), thread_name_prefix="trivet-rerank")


def described(folder: Path) -> RerankerFiles:
    try:
        description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        if description["kind"] != "reranker":
            raise RerankerError(
                f"{folder} holds an {description['kind']}, not a reranker. Set it as the embedder."
            )
        words = description.get("words")
        # Includes the word table, so that identities stay valid when it moves out.
        sum_of_all = description.get("whole_sha256", description["sha256"]["model.onnx"])
        return RerankerFiles(
            identity=f"{description['name']}/{sum_of_all[:HASH_LENGTH]}",
            model=folder / "model.onnx",
            tokenizer=(SHARED if words else folder) / "tokenizer.json",
            max_tokens=int(description["max_tokens"]),
            words=words,
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RerankerError(
            f"cannot read {folder / 'model.json'} ({error!r}): is the folder complete?"
        ) from error


def fast() -> OnnxReranker:
    return bundled(PRESETS["fast"].folder)


def best() -> OnnxReranker:
    return bundled(PRESETS["best"].folder)


def bundled(folder: str) -> OnnxReranker:
    where = WEIGHTS / folder
    if not (where / "model.onnx").is_file():
        raise RerankerError(
            "this installation has no bundled reranker. Name another one, such as "
            "rerank = folder:/path/to/model, or set rerank = off."
        )
    return _shared(described(where))


@cache
def _shared(files: RerankerFiles) -> OnnxReranker:
    """Share the model among the stores of a process, because opening is slow."""
    return OnnxReranker(files)


def open_folder(name: str) -> Reranker:
    folder = Path(name).expanduser().resolve()
    if not folder.is_dir():
        raise RerankerError(f"cannot load a reranker: the folder {folder} does not exist")
    if (folder / "model.json").is_file():
        return OnnxReranker(described(folder))
    model = next(
        (
            path
            for path in (folder / "model.onnx", folder / "onnx" / "model.onnx")
            if path.is_file()
        ),
        None,
    )
    if model is not None and (folder / "tokenizer.json").is_file():
        return OnnxReranker(
            RerankerFiles(folder.name, model, folder / "tokenizer.json", DEFAULT_MAX_TOKENS)
        )
    if any(folder.glob("*.safetensors")) or any(folder.glob("pytorch_model*.bin")):
        return SentenceReranker(folder)
    raise RerankerError(f"{folder} holds no reranker: expected model.onnx and tokenizer.json")


# Pairs between two checks of the time limit.
PAIRS_AT_ONCE = 8


class SentenceReranker:
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
            f"{folder} has no ONNX model that Trivet can run, so it needs another package: "
            "pip install 'sentence-transformers>=5'"
        ) from error
