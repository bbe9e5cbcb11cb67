from __future__ import annotations

from support.store_fixtures import memory, opened

__all__ = ["memory", "opened"]
