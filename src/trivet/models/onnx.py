"""Tokenizers, sessions and inputs shared by embedders and rerankers over ONNX files."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trivet.errors import EmbedderError
from trivet.models.embed.base import clean
from trivet.models.vocabulary import is_brief, tokenizer_of

logger = logging.getLogger("trivet.models")

KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
QUIET = 3
# A model's graph without its tables (scripts/map_weights.py).
MAPPED = "mapped.onnx"
HASH_LENGTH = 12


def open_tokenizer(path: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise EmbedderError(f"cannot read the tokenizer {path}: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


class SharedEmbeddings:
    """The memory-mapped word table of bundled models, called `name` in their files.

    Keep it as long as the session that uses it.
    """

    def __init__(self, path: Path, name: str) -> None:
        runtime = _runtime()
        try:
            self._table = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise EmbedderError(
                f"cannot read the word table {path} ({error}): is the installation complete?"
            ) from None
        self.name = name
        self.value = runtime.OrtValue.ortvalue_from_numpy(self._table)


def open_session(
    model: Path, threads: int, without: Sequence[str] = (), words: SharedEmbeddings | None = None
) -> Any:
    """Open a model, memory-mapped if possible: twice as fast, and processes share memory.

    `without` names graph optimizations to skip.
    """
    mapped = model.with_name(MAPPED)
    if mapped.exists():
        try:
            return _session(mapped, threads, without, words)
        except EmbedderError as error:  # ONNX Runtime restricts files that refer to other files
            logger.warning(
                "%s cannot be memory-mapped, so it is loaded whole and takes more memory: %s",
                model,
                error,
            )
    return _session(model, threads, without, words)


def _session(
    model: Path, threads: int, without: Sequence[str], words: SharedEmbeddings | None
) -> Any:
    onnxruntime = _runtime()
    options = onnxruntime.SessionOptions()
    if words is not None:
        options.add_external_initializers([words.name], [words.value])
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = QUIET
    # Spinning threads would use a core while waiting.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(
            str(model),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=list(without) or None,
        )
    except Exception as error:  # ONNX Runtime's errors share no public base class
        raise EmbedderError(f"cannot open the ONNX model {model}: {error}") from error


def import_runtime() -> None:
    """Import what opening a model needs, so that another thread can open one."""
    _runtime()
    import tokenizers  # noqa: F401


def _runtime() -> Any:
    # Since 1.29, ONNX Runtime sends telemetry unless this is set before it is loaded.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    return onnxruntime


def input_types(session: Any, model: Path) -> dict[str, type[np.int32] | type[np.int64]]:
    inputs = {
        put.name: np.int32 if put.type == "tensor(int32)" else np.int64
        for put in session.get_inputs()
    }
    unknown = sorted(set(inputs) - set(KNOWN_INPUTS))
    if unknown:
        raise EmbedderError(
            f"{model} needs the inputs {unknown}; only {list(KNOWN_INPUTS)} are supported"
        )
    return inputs


class Tokens:
    """An embedder's tokenizer; the first short text does not load it whole."""

    def __init__(self, file: Path, most: int) -> None:
        self._file, self._most = file, most
        self._opened: Any = None
        self._opening = threading.Lock()
        self._is_first = is_brief(file.parent)

    def open(self) -> Any:
        with self._opening:
            if self._opened is None:
                self._opened = open_tokenizer(self._file)
            return self._opened

    @property
    def window(self) -> int:
        return _window(self.open(), self._most)

    def count(self, text: str) -> int:
        return len(self.open().encode(clean(text), add_special_tokens=False).ids)

    def ids(self, text: str) -> list[int]:
        text = clean(text)
        tokenizer = self._fast_tokenizer(text) or self.open()
        encoding = tokenizer.encode(text, add_special_tokens=False)
        encoding.truncate(_window(tokenizer, self._most))
        ids: list[int] = tokenizer.post_process(encoding).ids
        return ids

    def _fast_tokenizer(self, text: str) -> Any:
        if self._opened is not None or not self._is_first:
            return None
        self._is_first = False
        try:
            return tokenizer_of(text, self._file.parent)
        except Exception as error:  # the library raises bare Exception
            raise EmbedderError(
                f"cannot read the tokenizer next to {self._file}: {error}"
            ) from error


def _window(tokenizer: Any, most: int) -> int:
    return most - int(tokenizer.num_special_tokens_to_add(False))
