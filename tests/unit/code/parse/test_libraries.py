"""Grammars are unpacked together, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from trivet.code.parse import prepare
from trivet.code.parse.parsers import unpack_grammars


def test_grammars_are_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMBLE_GRAMMARS_CACHE_DIR", str(tmp_path))
    prepare(["a.py", "b/c.json", "d.unknown", "e.md"])
    assert [path.suffix for path in tmp_path.glob("*/*python*")] == [
        path.suffix for path in tmp_path.glob("*/*")
    ]
    assert unpack_grammars(["python", "no such language"]) == 0
    assert unpack_grammars(["python", "json"]) == 1


def test_unwritable_cache_folder_is_tolerated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SEMBLE_GRAMMARS_CACHE_DIR", str(tmp_path / "file"))
    assert unpack_grammars(["python"]) == 0
