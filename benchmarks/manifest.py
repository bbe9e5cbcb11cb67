"""The manifest that accompanies each figure."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime


def manifest() -> dict[str, str]:
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "command": " ".join(["python", *sys.argv]),
        "commit": commit,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, shared",
    }
