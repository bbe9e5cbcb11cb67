from __future__ import annotations

from support.lab_fixtures import config, filled, folder, memory, runs, store

__all__ = ["config", "filled", "folder", "memory", "runs", "store"]
