"""After code indexing is killed at any moment, the next process completes the index."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from trivet.code.code_index import CodeIndex
from trivet.code.index.refresh import MIN_SHARED_BYTES

# More than one batch, and enough for a snapshot.
FILES = 140
KILLS = 5

# Counts Python and C function calls while a tree is indexed, and dies before the call of the given
# number. With 0 it counts all calls and prints the total.
INDEXING = """
import os, sys
from trivet.code.code_index import CodeIndex
from trivet.code.index import refresh
refresh.MIN_SHARED_BYTES = int(sys.argv[3])
last, count = int(sys.argv[2]), 0
def called(frame, event, argument):
    global count
    count += 1
    if count == last:
        os.kill(os.getpid(), 9)
index = CodeIndex.open(sys.argv[1])
sys.setprofile(called)
index.refresh()
sys.setprofile(None)
print(count)
"""


def indexing(
    tree: Path, last: int, fewest: int = MIN_SHARED_BYTES
) -> subprocess.CompletedProcess[bytes]:
    words = [sys.executable, "-c", INDEXING, str(tree), str(last), str(fewest)]
    return subprocess.run(words, capture_output=True, check=False)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"part{number:03}.py").write_text(
            f"def part_{number}(count: int) -> int:\n    return count\n"
        )
    return folder


def test_next_search_answers_fully(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVET_CODE_CACHE", str(tmp_path / "whole"))
    calls = int(indexing(tree, 0).stdout)
    rest, draw = [], random.Random(17)
    for round in range(KILLS):
        monkeypatch.setenv("TRIVET_CODE_CACHE", str(tmp_path / f"round{round}"))
        # Draw one from each part of the work, so that the end is covered too.
        last = int(calls * (round + draw.random()) / KILLS)
        assert indexing(tree, last).returncode == -9
        with CodeIndex.open(tree) as index:
            rest.append(index.refresh().indexed)
            assert index.status().files == FILES
            for number in (0, FILES // 2, FILES - 1):
                assert [hit.path for hit in index.search(f"part_{number}", limit=1).hits] == [
                    f"part{number:03}.py"
                ]
            assert index.refresh().indexed == 0
    assert rest[0] == FILES
    assert rest[-1] < FILES, "what was stored before the kill is not read again"


def test_helpers_of_a_killed_process_leave_no_partial_work(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVET_CODE_CACHE", str(tmp_path / "whole"))
    calls = int(indexing(tree, 0, fewest=0).stdout)
    for part in (0.3, 0.6):
        monkeypatch.setenv("TRIVET_CODE_CACHE", str(tmp_path / f"part{part}"))
        assert indexing(tree, int(calls * part), fewest=0).returncode == -9
        with CodeIndex.open(tree) as index:
            index.refresh()
            assert index.status().files == FILES
            for number in range(0, FILES, 20):
                assert [hit.path for hit in index.search(f"part_{number}", limit=1).hits] == [
                    f"part{number:03}.py"
                ]
