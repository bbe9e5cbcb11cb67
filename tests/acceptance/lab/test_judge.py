"""Judging works at a real terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from support.waiting import LIMIT_SECONDS
from trivet.lab.datasets.judgements import Record, record_file
from trivet.lab.datasets.plain_layout import load
from trivet.lab.datasets.pools import find_arms, make_pool, write_pool


def test_one_key_is_enough_at_a_real_terminal(folder: Path, runs: Path, tmp_path: Path) -> None:
    pool = make_pool(load(folder, allow_unanswerable=True), str(folder), find_arms([runs]), depth=2)
    write_pool(pool, tmp_path / "pool.jsonl")
    master, terminal = pty.openpty()
    command = [sys.executable, "-m", "trivet.cli", "lab", "judge", str(tmp_path / "pool.jsonl")]
    with subprocess.Popen(
        command, stdin=terminal, stderr=terminal, stdout=subprocess.PIPE
    ) as judge:
        os.close(terminal)
        screen = _play(master, ["3", "0", "u", "2", "q"])
        assert judge.stdout is not None
        output = judge.stdout.read().decode()
        assert judge.wait(LIMIT_SECONDS) == 0
    os.close(master)
    assert output.startswith("2 of ")
    assert screen.count("Question: ") == 5
    assert Record(record_file(tmp_path / "pool.jsonl"), pool, "tester").grades == {0: 3, 1: 2}


def _play(terminal: int, keys: Sequence[str]) -> str:
    """Press each key, without Return, when its prompt appears."""
    screen = ""
    for number, key in enumerate(keys, 1):
        while screen.count("\n> ") < number:
            screen += os.read(terminal, 4096).decode().replace("\r\n", "\n")
        os.write(terminal, key.encode())
    while "Stopped." not in screen:
        screen += os.read(terminal, 4096).decode().replace("\r\n", "\n")
    return screen
