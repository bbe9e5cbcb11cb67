"""The shell completes ids while the user types them."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command_line import CommandLine, process


def offered(line: str) -> list[str]:
    return process(
        _TRIVET_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(line.count(" "))
    ).out.split()


def test_ids_come_from_the_named_store(trivet: CommandLine, staging: str, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    there = trivet.json("remember", "Elsewhere.", "--path", str(other))["id"]
    assert offered(f"trivet get {staging[:4]}") == [staging]
    assert offered("trivet get ffff") == []
    assert offered(f"trivet --path {other} forget {there[:4]}") == [there]


def test_completion_is_silent_without_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIVET_PATH", str(tmp_path / "none" / "memory.db"))
    assert offered("trivet get 0") == []
    assert not (tmp_path / "none").exists()
