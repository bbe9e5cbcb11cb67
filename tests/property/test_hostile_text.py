"""No text makes the reader of the graph try every place against every other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_no_text_takes_long_to_read() -> None:
    """Some 350 texts of 8,000 bytes; a pattern that backtracks needs minutes for a single one of them."""
    result = subprocess.run(
        [sys.executable, Path(__file__).with_name("hostile.py")], capture_output=True, text=True, timeout=300
    )
    assert result.stdout == "read\n", result.stderr[-500:]
