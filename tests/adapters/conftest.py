"""Tests against the real frameworks; each is skipped unless installed (`make adapters`)."""

from __future__ import annotations

from support.opened import open_trivet, trivet

__all__ = ["open_trivet", "trivet"]
