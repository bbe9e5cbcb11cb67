"""What the processes of one server have in common, loaded before they are forked, so that they share its memory.

Python's fork server imports this module and does nothing else: there is no thread yet that a fork would lose. The
models run in the thread of whoever asks them, so they can be opened before.
"""

from __future__ import annotations

import gc
import logging
import os

import starlette.applications  # noqa: F401 - this and what follows is for the processes to come
import uvicorn  # noqa: F401

import trivet.memory.recall
import trivet.memory.remember
import trivet.store.sqlite  # noqa: F401
from trivet.errors import TrivetError
from trivet.memory.supersession.verdict import open_pair_model
from trivet.models.embed.registry import DEFAULT
from trivet.models.rerank.registry import PRESETS, RerankSpec
from trivet.settings import Settings

# Says to the fork server which of the models are going to be asked.
PRELOADED_MODELS = "_TRIVET_OPENED_BEFORE_FORK"
EMBEDDER, READER = "embedder", "changes"
logger = logging.getLogger("trivet.serve.http")


def bundled_models(settings: Settings) -> list[str]:
    """Those of the bundled models that a server with these settings asks."""
    wanted = {EMBEDDER: settings.embedder == DEFAULT, READER: settings.changes == "read"}
    kind = RerankSpec.parse(settings.rerank).kind
    return [
        *(name for name, is_wanted in wanted.items() if is_wanted),
        *([kind] if kind in PRESETS else []),
    ]


def open_models(names: list[str]) -> None:
    from trivet.models.embed.onnx import bundled
    from trivet.models.rerank.local import bundled as bundled_reranker

    for name in names:
        try:
            if name == EMBEDDER:
                bundled().open(whole=True)
            elif name == READER:
                open_pair_model()
            else:
                bundled_reranker(PRESETS[name].folder).open()
        except TrivetError as error:  # whoever asks the model meets it too, and tells it
            logger.warning(
                "The model %s is not shared by the processes of the server: %s", name, error
            )


if PRELOADED_MODELS in os.environ:
    open_models(os.environ[PRELOADED_MODELS].split())
    gc.collect()
    gc.freeze()  # or the first collection of each process would write to, and so copy, all that is shared
