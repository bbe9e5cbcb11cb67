"""The model that reads two statements and says whether the newer makes the older one outdated. It comes with Trivet."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from trivet.bounded_cache import MIB, BoundedCache

if TYPE_CHECKING:
    from trivet.models.rerank.onnx import OnnxReranker

FOLDER = "changes"
# Raised when another model reads, so that every store compares its memories anew: hours for 100,000.
# Not when others are compared than before, which is for what is written from then on.
READER_VERSION = 2
# Some milliseconds a pair; a machine that needs longer than this for a few is not waited for.
LONGEST_SECONDS = 5.0
# Of two memories that wait to be compared each may meet the other: some thousand pairs are not read twice.
_kept: BoundedCache[tuple[str, str], float] = BoundedCache(2 * MIB)


@cache
def _reader() -> OnnxReranker:
    from trivet.models.rerank.onnx import bundled

    return bundled(FOLDER)


def open_reader() -> None:
    """Before it is asked. Raises RerankerError."""
    _reader().open()


def read(new: str, olds: Sequence[str], seconds: float = LONGEST_SECONDS) -> list[float]:
    """One number a pair; above 0 it is rather an update than none. Raises RerankerError, also after so many seconds."""
    known = {old: score for old in olds if (score := _kept.get((new, old))) is not None}
    unread = [old for old in dict.fromkeys(olds) if old not in known]
    if unread:
        known |= zip(unread, _reader().score(new, unread, time.monotonic() + seconds), strict=True)
        for old in unread:
            _kept.put((new, old), known[old])
    return [known[old] for old in olds]
