from __future__ import annotations

from rerank.conftest import Opened, open_trivet

__all__ = ["Opened", "open_trivet"]
