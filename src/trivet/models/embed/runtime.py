"""One ONNX model opened for use: tokenizer and session, one text at a time.

Texts are not batched. Dynamic int8 quantisation takes one scale over the whole input of a layer, so in a batch a text's
vector depends on its neighbours (cosine .991 between alone and in a batch of 64, as much as quantisation itself costs).
And it is no slower: on 2 cores, single texts on two threads of ours embed 1.15 times as many as the best padded batch
on two threads of the runtime. It also leaves nothing to pad.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from trivet.errors import EmbedderError
from trivet.models.embed.base import Vectors, clean

Pooling = Literal["mean", "cls", "max", "last"]

POOLED_OUTPUTS = ("sentence_embedding", "embedding")
KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
# Below this the cost of waking threads inside one text eats what they gain (bundled model: 2.0 ms on one thread and
# 1.7 ms on two); above it a single query is slow enough to deserve every core.
SINGLE_THREAD_BYTES = 64 * 2**20
MOST_THREADS = 4
QUIET = 3


def usable_cores() -> int:
    """Cores this process may run on, bounded so that a background job leaves a large machine to its owner."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, MOST_THREADS)


class Runtime:
    """Opens on construction, which takes tens of milliseconds; afterwards it is immutable and safe for any thread."""

    def __init__(self, model: Path, tokenizer: Path, max_tokens: int, pooling: Pooling) -> None:
        threads = 1 if _weight(model) < SINGLE_THREAD_BYTES else usable_cores()
        self.workers = usable_cores() // threads
        self._tokenizer = open_tokenizer(tokenizer)
        self._session = open_session(model, threads)
        self._inputs = input_types(self._session, model)
        self._output = _output_name(self._session)
        self._pooling = pooling
        self.window: int = max_tokens - self._tokenizer.num_special_tokens_to_add(False)

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(clean(text), add_special_tokens=False).ids)

    def vector(self, text: str) -> Vectors:
        """The pooled vector of one text, not yet checked or normalised."""
        output = self._run(self._token_ids(text))
        vector = pooled(output[0], self._pooling) if output.ndim == 3 else output[0]
        return np.asarray(vector, dtype=np.float32)

    def _token_ids(self, text: str) -> list[int]:
        encoding = self._tokenizer.encode(clean(text), add_special_tokens=False)
        encoding.truncate(self.window)
        ids: list[int] = self._tokenizer.post_process(encoding).ids
        return ids

    def _run(self, ids: list[int]) -> Any:
        tokens = np.array([ids])
        values = {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "token_type_ids": np.zeros_like(tokens)}
        feed = {name: values[name].astype(kind, copy=False) for name, kind in self._inputs.items()}
        try:
            return self._session.run([self._output], feed)[0]
        except Exception as error:  # the runtime's errors share no public base class
            raise EmbedderError(f"the ONNX model failed on a text of {len(ids)} tokens: {error}") from error


def pooled(states: Vectors, pooling: Pooling) -> Vectors:
    """One vector from the states of one text's tokens; there is no padding among them."""
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
    """Size of the model with its external data, which large exports keep in files named after the model."""
    return sum(path.stat().st_size for path in model.parent.glob(f"{model.name}*"))


def open_tokenizer(path: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise EmbedderError(f"cannot read the tokenizer {path}: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def open_session(model: Path, threads: int, without: Sequence[str] = ()) -> Any:
    """`without` names optimisations of the runtime that would make this model slower."""
    # Since 1.29 the runtime reports to its makers unless told otherwise before it is loaded. Trivet reports to nobody.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = QUIET
    # Spinning threads would burn a core in a process that waits for the next question.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(
            str(model), options, providers=["CPUExecutionProvider"], disabled_optimizers=list(without) or None
        )
    except Exception as error:  # the runtime's errors share no public base class
        raise EmbedderError(f"cannot open the ONNX model {model}: {error}") from error


def input_types(session: Any, model: Path) -> dict[str, type[np.int32] | type[np.int64]]:
    inputs = {put.name: np.int32 if put.type == "tensor(int32)" else np.int64 for put in session.get_inputs()}
    unknown = sorted(set(inputs) - set(KNOWN_INPUTS))
    if unknown:
        raise EmbedderError(f"{model} wants the inputs {unknown}; a text embedder takes only {list(KNOWN_INPUTS)}")
    return inputs


def _output_name(session: Any) -> str:
    names: list[str] = [put.name for put in session.get_outputs()]
    return next((name for name in POOLED_OUTPUTS if name in names), names[0])
