from __future__ import annotations

from support.store_fixtures import open_trivet, trivet

__all__ = ["open_trivet", "trivet"]
