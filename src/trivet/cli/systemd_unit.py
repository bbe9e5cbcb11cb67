"""The unit that lets systemd keep the resident process for a user."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

UNIT = """# Trivet's resident process for one user: {where}
# systemctl --user daemon-reload; systemctl --user enable --now trivet-resident.service
[Unit]
Description=Trivet's resident process: models and indexes kept warm

[Service]
Type=exec
ExecStart={command}
# systemd ends it with the session. Without a limit on idle time it is always there.
Environment=TRIVET_RESIDENT_IDLE_SECONDS=0
# It ends with 75 when it has grown beyond TRIVET_RESIDENT_MEMORY_MB, and is started anew.
Restart=on-failure
RestartSec=2
TimeoutStopSec=30
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=default.target
"""
WHERE = "~/.config/systemd/user/trivet-resident.service"


def unit_text(path: str | None) -> str:
    """With the program that runs now, and the store it was given."""
    store = ["--path", path if "://" in path else str(Path(path).expanduser().absolute())] if path else []
    words = [sys.executable, "-P", "-m", "trivet.cli", "up", *store]
    return UNIT.format(where=WHERE, command=shlex.join(words).replace("%", "%%"))
