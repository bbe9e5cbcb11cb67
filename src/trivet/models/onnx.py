"""What embedders and rerankers over ONNX files share: tokenizer, session, inputs.

How texts are cut into tokens for one embedder.
"""

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
# The runtime's own log level for errors alone.
QUIET = 3
# Beside a bundled model: its graph, whose tables stay where they lie in the model's file (scripts/map_weights.py).
MAPPED = "mapped.onnx"
# So much of a file's checksum tells one model from another in an identity.
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
    """The table of words that several bundled models have in common, mapped from its file.

    `name` is what the models' files call it. Whoever opens a session with it must keep it for as long as the session:
    the runtime reads the mapped file.
    """

    def __init__(self, path: Path, name: str) -> None:
        runtime = _runtime()
        try:
            self._table = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise EmbedderError(
                f"cannot read the table of words {path} ({error}): is the installation whole?"
            ) from None
        self.name = name
        self.value = runtime.OrtValue.ortvalue_from_numpy(self._table)


def open_session(
    model: Path, threads: int, without: Sequence[str] = (), words: SharedEmbeddings | None = None
) -> Any:
    """`without` names optimisations of the runtime that would make this model slower.

    Where the model's tables can be mapped, they are: it opens in half the time, and processes share them.
    """
    mapped = model.with_name(MAPPED)
    if mapped.exists():
        try:
            return _session(mapped, threads, without, words)
        except (
            EmbedderError
        ) as error:  # the runtime has its own rules for files that name other files
            logger.warning(
                "%s is read whole, which takes more memory, since it cannot be mapped: %s",
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
    # Spinning threads would burn a core in a process that waits for the next question.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(
            str(model),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=list(without) or None,
        )
    except Exception as error:  # the runtime's errors share no public base class
        raise EmbedderError(f"cannot open the ONNX model {model}: {error}") from error


def import_runtime() -> None:
    """What opening a model imports, so that it can be opened in another thread without importing anything there."""
    _runtime()
    import tokenizers  # noqa: F401


def _runtime() -> Any:
    # Since 1.29 the runtime reports to its makers unless told otherwise before it is loaded. Trivet reports to nobody.
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
            f"{model} wants the inputs {unknown}; a text embedder takes only {list(KNOWN_INPUTS)}"
        )
    return inputs


class Tokens:
    """The first text is cut without opening the whole tokenizer, where that can be: many a process asks only once."""

    def __init__(self, file: Path, most: int) -> None:
        """`most` tokens are a text's at most, the special ones among them."""
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
        tokenizer = self._brief(text) or self.open()
        encoding = tokenizer.encode(text, add_special_tokens=False)
        encoding.truncate(_window(tokenizer, self._most))
        ids: list[int] = tokenizer.post_process(encoding).ids
        return ids

    def _brief(self, text: str) -> Any:
        if self._opened is not None or not self._is_first:
            return None
        self._is_first = False
        try:
            return tokenizer_of(text, self._file.parent)
        except Exception as error:  # the library raises bare Exception
            raise EmbedderError(
                f"cannot read the tokenizer beside {self._file}: {error}"
            ) from error


def _window(tokenizer: Any, most: int) -> int:
    return most - int(tokenizer.num_special_tokens_to_add(False))
