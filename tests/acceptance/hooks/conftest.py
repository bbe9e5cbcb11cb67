from __future__ import annotations

from acceptance.resident.conftest import folder, home, shared_folder, warm

__all__ = ["folder", "home", "shared_folder", "warm"]
