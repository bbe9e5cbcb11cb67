"""Modules and models loaded before the fork, so that worker processes share them.

Python's fork server imports only this module, before any thread starts.
"""

from __future__ import annotations

import gc
import logging
import os

import starlette.applications  # noqa: F401 - these imports are for the workers
import uvicorn  # noqa: F401

import trivet.memory.recall
import trivet.memory.remember
import trivet.store.sqlite  # noqa: F401
from trivet.errors import TrivetError
from trivet.memory.supersession.verdict import open_pair_model
from trivet.models.embed.registry import DEFAULT
from trivet.models.rerank.registry import PRESETS, RerankSpec
from trivet.settings import Settings

# Names the models that the fork server opens.
PRELOADED_MODELS = "_TRIVET_OPENED_BEFORE_FORK"
EMBEDDER, READER = "embedder", "changes"
logger = logging.getLogger("trivet.serve.http")


def bundled_models(settings: Settings) -> list[str]:
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
        except TrivetError as error:  # callers of the model get the same error
            logger.warning("The worker processes cannot share the model %s: %s", name, error)


if PRELOADED_MODELS in os.environ:
    open_models(os.environ[PRELOADED_MODELS].split())
    gc.collect()
    gc.freeze()  # else each worker's first collection would copy the shared memory
