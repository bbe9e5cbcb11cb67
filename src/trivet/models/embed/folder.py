"""Embedders from a local folder: bundled layout, plain ONNX, or sentence-transformers."""

from __future__ import annotations

import hashlib
import importlib
import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trivet.errors import EmbedderError
from trivet.models.embed.base import Embedder, Vectors, checked, clean
from trivet.models.embed.onnx import OnnxEmbedder, OnnxFiles, Pooling, described
from trivet.models.onnx import HASH_LENGTH

DEFAULT_MAX_TOKENS = 512
# Tokenizer configurations express "no limit" as a number like 1e30.
MAX_SENSIBLE_WINDOW = 1_000_000
# Any other module, such as a dense layer, needs the library.
SIMPLE_MODULES = ("Transformer", "Pooling", "Normalize")
POOLING_MODES: dict[str, Pooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
}
DOCUMENT_PROMPTS = ("document", "passage", "corpus")
SAMPLE_BYTES = 2**20


def open_folder(name: str) -> Embedder:
    folder = Path(name).expanduser().resolve()
    if not folder.is_dir():
        raise EmbedderError(f"cannot load an embedder: the folder {folder} does not exist")
    if (folder / "model.json").is_file():
        return OnnxEmbedder(described(folder))
    model = _onnx_model(folder)
    if model is not None and (folder / "tokenizer.json").is_file() and _is_simple(folder):
        return OnnxEmbedder(_onnx_files(folder, model))
    if (folder / "modules.json").is_file() or _has_weights(folder):
        return SentenceEmbedder(folder, _identity(folder))
    raise EmbedderError(
        f"{folder} holds no model: expected model.onnx (or onnx/model.onnx) and tokenizer.json"
    )


def _onnx_files(folder: Path, model: Path) -> OnnxFiles:
    prompts = _prompts(folder)
    return OnnxFiles(
        identity=_identity(folder),
        model=model,
        tokenizer=folder / "tokenizer.json",
        max_tokens=_max_tokens(folder),
        pooling=_pooling(folder),
        query_prompt=prompts.get("query", ""),
        document_prompt=next((prompts[name] for name in DOCUMENT_PROMPTS if name in prompts), ""),
    )


def _onnx_model(folder: Path) -> Path | None:
    """Prefer model.onnx: others are often variants for one processor."""
    usual = (folder / "model.onnx", folder / "onnx" / "model.onnx")
    candidates = [*usual, *sorted(folder.glob("onnx/model*.onnx"))]
    return next((path for path in candidates if path.is_file()), None)


def _has_weights(folder: Path) -> bool:
    return any(folder.glob("*.safetensors")) or any(folder.glob("pytorch_model*.bin"))


def _is_simple(folder: Path) -> bool:
    modules = _read(folder / "modules.json", [])
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    # Trivet pools all tokens; excluding the prompt needs the library.
    prompt_pooled = _read(folder / "1_Pooling" / "config.json", {}).get("include_prompt", True)
    return prompt_pooled and all(kind in SIMPLE_MODULES for kind in kinds)


def _pooling(folder: Path) -> Pooling:
    path = folder / "1_Pooling" / "config.json"
    config = _read(path, {})
    chosen = [
        name for name, value in config.items() if name.startswith("pooling_mode_") and value is True
    ]
    if not chosen:
        return "mean"
    if len(chosen) > 1 or chosen[0] not in POOLING_MODES:
        raise EmbedderError(
            f"{path} sets {chosen}; an ONNX folder must set exactly one of {list(POOLING_MODES)}"
        )
    return POOLING_MODES[chosen[0]]


def _prompts(folder: Path) -> dict[str, str]:
    config = _read(folder / "config_sentence_transformers.json", {})
    prompts: dict[str, str] = {
        name: text for name, text in (config.get("prompts") or {}).items() if text
    }
    default = prompts.get(config.get("default_prompt_name") or "", "")
    return {"query": default, "document": default} | prompts if default else prompts


def _max_tokens(folder: Path) -> int:
    stated = (
        _read(folder / "sentence_bert_config.json", {}).get("max_seq_length"),
        _read(folder / "tokenizer_config.json", {}).get("model_max_length"),
        _read(folder / "config.json", {}).get("max_position_embeddings"),
    )
    sensible = (int(value) for value in stated if value and 0 < value < MAX_SENSIBLE_WINDOW)
    return next(sensible, DEFAULT_MAX_TOKENS)


def _identity(folder: Path) -> str:
    return f"{folder.name}/{_fingerprint(folder)[:HASH_LENGTH]}"


def _fingerprint(folder: Path) -> str:
    """Hash configuration files, and the size and both ends of weights, which can be gigabytes."""
    digest = hashlib.sha256()
    for path in _identifying_files(folder):
        digest.update(f"{path.relative_to(folder)}:{path.stat().st_size}\n".encode())
        with path.open("rb") as file:
            digest.update(file.read(SAMPLE_BYTES))
            file.seek(max(0, path.stat().st_size - SAMPLE_BYTES))
            digest.update(file.read(SAMPLE_BYTES))
    return digest.hexdigest()


def _identifying_files(folder: Path) -> Iterator[Path]:
    for pattern in (
        "*.json",
        "*/config.json",
        "*.onnx*",
        "onnx/*.onnx*",
        "*.safetensors",
        "pytorch_model*.bin",
    ):
        yield from sorted(path for path in folder.glob(pattern) if path.is_file())


def _read(path: Path, missing: Any) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return missing
    except (OSError, ValueError) as error:
        raise EmbedderError(f"cannot read {path}: {error}") from error


SENTENCE_MAX_TOKENS = 512


class SentenceEmbedder:
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
        return int(model.max_seq_length or SENTENCE_MAX_TOKENS) - int(
            model.tokenizer.num_special_tokens_to_add(False)
        )

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        rows = self._model().encode_document(
            [clean(text) for text in texts], show_progress_bar=False
        )
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
                self._opened = self._library.SentenceTransformer(
                    str(self._folder), local_files_only=True
                )
            return self._opened


def _library(folder: Path) -> Any:
    try:
        return importlib.import_module("sentence_transformers")
    except ImportError as error:
        raise EmbedderError(
            f"{folder} has no ONNX model that Trivet can run, so it needs another package: "
            "pip install 'sentence-transformers>=5'"
        ) from error
