"""The manifest of a committed result."""

from __future__ import annotations

import platform
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any


def manifest(command: str) -> dict[str, Any]:
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "command": " ".join([f"python -m {command}", *sys.argv[1:]]),
        "commit": commit,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "machine": platform.machine(),
    }
