from __future__ import annotations

from unit.models.rerank.conftest import Opened, open_trivet

__all__ = ["Opened", "open_trivet"]
