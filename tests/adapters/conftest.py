"""Tests against the real frameworks, skipped where one is not installed: `make adapters` installs each."""

from __future__ import annotations

from support.opened import open_trivet, trivet

__all__ = ["open_trivet", "trivet"]
