"""The command writes the Markdown mirror."""

from __future__ import annotations

from pathlib import Path

from support.command_line import process
from trivet import Trivet


def test_export_markdown(path: Path, tmp_path: Path) -> None:
    with Trivet.open(path, embedder="none", background=False) as memory:
        memory.remember("in the clear")
        memory.remember("a hidden thing", sensitive=True)
    folder = str(tmp_path / "files")
    done = process(
        "export", "--markdown", folder, "--json", TRIVET_PATH=str(path), TRIVET_EMBEDDER="none"
    )
    assert (done.status, done.json()["written"]) == (0, 1)
    files = list((tmp_path / "files").rglob("*.md"))
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600]
    assert "hidden" not in files[0].read_text()
    both = process(
        "export",
        "--markdown",
        folder,
        "--output",
        "x",
        TRIVET_PATH=str(path),
        TRIVET_EMBEDDER="none",
    )
    assert both.status == 2
