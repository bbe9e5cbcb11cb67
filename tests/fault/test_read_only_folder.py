"""A folder without write permission gives an error that says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from trivet import Trivet

AS_SOMEBODY_ELSE = """
import os, sys
from trivet import StoreError, Trivet
with Trivet.open(sys.argv[1], embedder="none", background=False) as trivet:
    trivet.remember("text")  # imports everything while it may still be read
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
for target in sys.argv[2:]:
    try:
        with Trivet.open(target, embedder="none", background=False) as trivet:
            trivet.remember("text")
        print("written")
    except StoreError as error:
        print(error)
"""


def test_read_only_folder_is_reported(tmp_path: Path) -> None:
    file_lock = tmp_path / "locked"
    file_lock.mkdir()
    with Trivet.open(file_lock / "kept.db", embedder="none", background=False) as trivet:
        trivet.remember("text")
    (file_lock / "kept.db").chmod(0o444)
    file_lock.chmod(0o555)
    for folder in (tmp_path, *list(tmp_path.parents)[:3]):
        folder.chmod(folder.stat().st_mode | 0o111)
    targets = [file_lock / "new.db", file_lock / "below" / "new.db", file_lock / "kept.db"]
    script = [sys.executable, "-c", AS_SOMEBODY_ELSE, str(tmp_path / "own.db"), *map(str, targets)]
    # Where another test stores keys, the configuration folder is private to its owner.
    environment = {**os.environ, "TRIVET_CONFIG": str(tmp_path / "none.toml")}
    ran = subprocess.run(script, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    told = ran.stdout.splitlines()
    file_lock.chmod(0o755)
    assert len(told) == 3
    for line, target in zip(told, targets, strict=True):
        assert str(target) in line
        assert "cannot be" in line
    assert not (file_lock / "new.db").exists()
