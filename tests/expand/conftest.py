from __future__ import annotations

from core.conftest import Opened, open_trivet

__all__ = ["Opened", "open_trivet"]
