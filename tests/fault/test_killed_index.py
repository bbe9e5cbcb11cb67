"""A process that is killed while it writes an index file leaves nothing that is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.opened import Opened
from support.waiting import LIMIT_SECONDS
from trivet.store.sqlite import maintenance

WRITER = """
import sys
from trivet import Trivet
from trivet.store.sqlite import index_files, maintenance

def half(stream, *_):
    stream.write(b"half of a file")
    stream.flush()
    print("writing", flush=True)
    sys.stdin.read()

index_files.ArrayWriter = half
maintenance.LEAST_MEMORIES = 1
Trivet.open(sys.argv[1], embedder="none", background=False).engine.store.upkeep.renew_index()
"""


def test_killed_while_writing(open_trivet: Opened, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "LEAST_MEMORIES", 1)
    trivet = open_trivet()
    trivet.remember("The harbour office keeps the relay.")
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    process.kill()
    process.communicate(timeout=LIMIT_SECONDS)
    folder = path.with_name(f"{path.name}.index")
    (left,) = folder.iterdir()
    assert left.suffix == ".partial"
    other = open_trivet()
    assert [hit.memory.content for hit in other.recall("relay").hits] == ["The harbour office keeps the relay."]
    other.purge(other.recall("relay").hits[0].memory.id)
    assert not list(folder.iterdir()), "what it left may hold what is purged"
