"""The model that reads two statements and says whether the newer makes the older one outdated. It comes with Trivet."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trivet.models.rerank.onnx import OnnxReranker

FOLDER = "changes"
# Raised when another model reads, so that every store compares its memories anew.
READER_VERSION = 1
# Some milliseconds a pair; a machine that needs longer than this for a few is not waited for.
LONGEST_SECONDS = 5.0


@cache
def _reader() -> OnnxReranker:
    from trivet.models.rerank.onnx import bundled

    return bundled(FOLDER)


def read(new: str, olds: Sequence[str], seconds: float = LONGEST_SECONDS) -> list[float]:
    """One number a pair; above 0 it is rather an update than none. Raises RerankerError, also after so many seconds."""
    return _reader().score(new, olds, time.monotonic() + seconds)
