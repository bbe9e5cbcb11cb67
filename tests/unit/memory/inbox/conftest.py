from __future__ import annotations

from unit.agents.capture.conftest import Opened, memory, opened

__all__ = ["Opened", "memory", "opened"]
