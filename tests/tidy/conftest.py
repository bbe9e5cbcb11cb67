from __future__ import annotations

from capture.conftest import Opened, memory, opened

__all__ = ["Opened", "memory", "opened"]
