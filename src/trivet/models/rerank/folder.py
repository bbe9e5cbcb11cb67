"""A reranker from a local folder: ONNX, or weights that the sentence-transformers library runs."""

from __future__ import annotations

from pathlib import Path

from trivet.errors import RerankerError
from trivet.models.rerank.base import Reranker
from trivet.models.rerank.onnx import DEFAULT_MAX_TOKENS, OnnxReranker, RerankerFiles, described


def open_folder(name: str) -> Reranker:
    """Prefers ONNX; weights in another format need the sentence-transformers library."""
    folder = Path(name).expanduser().resolve()
    if not folder.is_dir():
        raise RerankerError(f"there is no folder {folder} to load a reranker from")
    if (folder / "model.json").is_file():
        return OnnxReranker(described(folder))
    model = next((path for path in (folder / "model.onnx", folder / "onnx" / "model.onnx") if path.is_file()), None)
    if model is not None and (folder / "tokenizer.json").is_file():
        return OnnxReranker(RerankerFiles(folder.name, model, folder / "tokenizer.json", DEFAULT_MAX_TOKENS))
    if any(folder.glob("*.safetensors")) or any(folder.glob("pytorch_model*.bin")):
        from trivet.models.rerank.sentence import SentenceReranker

        return SentenceReranker(folder)
    raise RerankerError(f"{folder} holds no reranker: expected model.onnx beside tokenizer.json")
