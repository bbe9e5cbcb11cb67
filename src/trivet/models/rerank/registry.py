"""From the name of a reranker to the reranker. Importing this is cheap: each kind is imported when it is asked for."""

from __future__ import annotations

import threading
from pathlib import Path

from trivet.errors import RerankerError
from trivet.models.rerank.base import Reranker
from trivet.models.rerank.presets import MODELS, PRESETS
from trivet.models.rerank.spec import RerankSpec


def load(spec: RerankSpec) -> Reranker:
    """The reranker of that name, which must not be `off`. Opens no model and calls no one yet."""
    if spec.kind in PRESETS:
        return _bundled(PRESETS[spec.kind].folder)
    if spec.kind == "folder":
        return open_folder(spec.name)
    from trivet.models.rerank.endpoint import open_endpoint

    return open_endpoint(spec)


def open_folder(name: str) -> Reranker:
    """Prefers ONNX; weights in another format need the sentence-transformers library."""
    from trivet.models.rerank.onnx import DEFAULT_MAX_TOKENS, OnnxReranker, RerankerFiles, described

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


class Rerankers:
    """The rerankers of a process, each loaded when it is first asked for and shared by all who ask.

    `own` is the one that the settings name, if they name one beside the bundled presets.
    """

    def __init__(self, setting: RerankSpec) -> None:
        self.setting = setting
        self._loaded: dict[str, Reranker] = {}
        self._lock = threading.Lock()
        self.asked = 0
        self.failed = 0
        if setting.kind != "off":
            self.named(setting.kind)  # a setting that cannot work is told when the store is opened

    def named(self, kind: str) -> Reranker:
        """`fast`, `best`, or anything else for the one of the settings."""
        spec = RerankSpec(kind) if kind in PRESETS else self.setting
        with self._lock:
            if str(spec) not in self._loaded:
                self._loaded[str(spec)] = load(spec)
            return self._loaded[str(spec)]

    def note(self, answered: bool) -> None:
        with self._lock:
            self.asked += 1
            self.failed += not answered


def _bundled(folder: str) -> Reranker:
    from trivet.models.rerank.onnx import OnnxReranker, described

    where = MODELS / folder
    if not (where / "model.onnx").is_file():
        raise RerankerError(
            "this installation comes without its reranker. Name another one, such as rerank = folder:/path/to/model, "
            "or set rerank = off."
        )
    return OnnxReranker(described(where))
