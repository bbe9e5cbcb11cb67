from __future__ import annotations

from support.store_fixtures import Opened, open_trivet

__all__ = ["Opened", "open_trivet"]
