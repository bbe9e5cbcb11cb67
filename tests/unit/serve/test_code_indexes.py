"""The resident process keeps few code indexes open and closes idle ones."""

from __future__ import annotations

from pathlib import Path

from trivet.code.types import Symbol
from trivet.serve.resident.open_stores import MAX_OPEN_INDEXES, CodeIndexes


def test_open_indexes_are_limited_and_idle_ones_close(tmp_path: Path) -> None:
    indexes = CodeIndexes()
    folders = [tmp_path / f"project{number}" for number in range(MAX_OPEN_INDEXES + 1)]
    for folder in folders:
        folder.mkdir()
        (folder / "a.py").write_text("def start() -> None: ...\n")
        indexes.open_now(str(folder))
    first, second, *_ = map(str, folders)
    assert indexes.folders == tuple(map(str, folders[1:]))
    assert indexes.answer(first, Symbol(name="start")) is None
    found = indexes.answer(second, Symbol(name="start"))
    assert found is not None
    assert [hit.path for hit in found.hits] == ["a.py"]
    indexes.close_idle(seconds=0)
    assert indexes.folders == ()


def test_missing_folder_is_ignored(tmp_path: Path) -> None:
    indexes = CodeIndexes()
    indexes.open_now(str(tmp_path / "nowhere"))
    assert indexes.folders == ()
