from __future__ import annotations

from support.notes import memory, take, vault, write

__all__ = ["memory", "take", "vault", "write"]
