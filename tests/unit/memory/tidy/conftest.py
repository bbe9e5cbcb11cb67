from __future__ import annotations

from support.opened import memory, opened

__all__ = ["memory", "opened"]
