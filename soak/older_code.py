"""Trivet at earlier schema versions, from this repository's history, run with today's packages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Last commit of each schema version of the embedded store.
COMMITS: Mapping[int, str] = {
    1: "965bff2",
    2: "4511264",
    3: "93930d0",
    4: "ba89adc",
    5: "2cfdfa0",
    6: "8df67f6",
    7: "4556b76",
    8: "48bcdd6",
    9: "79e16ae",
    10: "7884fbf",
    11: "f86968d7",
    12: "4176d1d1",
    13: "8439e693",
    14: "67af2031",
}
# One memory of each kind that every version knows.
WRITES = """
import json, sys
from trivet import Trivet
with Trivet.open(sys.argv[1], embedder="none", background=False) as memory:
    office = memory.remember("The office of Acme is in Rostock.", tags=["acme"], title="Acme")
    clara = memory.remember("Clara works at Acme.")
    memory.edit(clara.id, content="Clara worked at Acme until spring.")
    gone = memory.remember("Emil was forgotten.")
    memory.forget(gone.id)
    move = memory.remember("Since May the office of Acme is in Bremen.")
    memory.link(move.id, "supersedes", office.id)
    ids = (office.id, clara.id, gone.id, move.id)
    print(json.dumps([[one.id, one.content, one.state, one.revision] for one in map(memory.get, ids)]))
"""
OPENS = """
import sys
from trivet import Trivet, TrivetError
try:
    Trivet.open(sys.argv[1], embedder="none", background=False)
    print("opened")
except TrivetError as error:
    print(f"refused: {error}")
"""


def taken_out(version: int, folder: Path) -> Path | None:
    """Return an importable folder of that version, or None if the history is too short."""
    return of_commit(COMMITS[version], folder / f"version-{version}")


def of_commit(commit: str, target: Path) -> Path | None:
    target.mkdir()
    archive = subprocess.run(
        ["git", "archive", commit, "src/trivet"], cwd=ROOT, capture_output=True
    )
    if archive.returncode:
        return None
    subprocess.run(["tar", "-x", "-C", str(target)], input=archive.stdout, check=True)
    return target / "src"


def run(package: Path, script: str, path: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(package)}
    ran = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        env=environment,
        cwd=path.parent,
        capture_output=True,
        text=True,
    )
    return ran.stdout.strip() or ran.stderr.strip()[-500:]
