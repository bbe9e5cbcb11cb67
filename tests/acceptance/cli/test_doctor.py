"""`trivet doctor` shows problems on the command line."""

from __future__ import annotations

from pathlib import Path

from support.command_line import process
from trivet import Trivet


def test_doctor_shows_cause_and_fix(path: Path) -> None:
    with Trivet.open(path, embedder="none", background=False) as memory:
        memory.remember("Lamps are green.")
    path.chmod(0o644)
    shown = process("doctor", TRIVET_PATH=str(path), TRIVET_EMBEDDER="none")
    assert shown.status == 5
    assert "Other users of this machine can read your memories." in shown.out
    assert "chmod 600" in shown.out
