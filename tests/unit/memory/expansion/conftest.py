from __future__ import annotations

from support.opened import Opened, open_trivet

__all__ = ["Opened", "open_trivet"]
