"""Memories mirrored to files read back exactly, and edits go both ways."""

from __future__ import annotations

from pathlib import Path

from trivet import Trivet
from trivet.sources.files import ingest
from trivet.sources.files.mirror import Mirrored, mirror


def to_files(memory: Trivet, folder: Path) -> Mirrored:
    return mirror(
        memory.export(include_sensitive=True), folder, lambda file, text: _write(file, text)
    )


def _write(file: Path, text: str) -> None:
    file.write_bytes(text.encode())


def test_edits_go_both_ways_without_overwriting(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    with Trivet.open(path, embedder="none", background=False) as memory:
        id = memory.remember("The port is 6543.", title="Port").id
        gone = memory.remember("Soon gone.").id
        to_files(memory, folder)
        (file,) = folder.rglob("port-*.md")
        file.write_text(file.read_text().replace("6543", "7777"))
        memory.edit(id, content="The port is 8888.")
        memory.forget(gone)
        done = to_files(memory, folder)
        assert (done.left, done.removed) == ((f"default/{file.name}",), 1)
        assert "7777" in file.read_text()
        assert ingest(memory, folder).updated + ingest(memory, folder).stored <= 1
        assert memory.get(id).content == "The port is 7777."
        done = to_files(memory, folder)
        assert (done.left, done.written) == ((), 1)  # the file is written again in canonical form
        memory.edit(id, title="Harbour")
        to_files(memory, folder)
        assert [one.name[:7] for one in folder.rglob("*.md")] == ["harbour"]
        (folder / "mine.md").write_text("my own note")
        to_files(memory, folder)
        assert (folder / "mine.md").read_text() == "my own note"


def test_deleted_mirror_file_forgets_memory(path: Path, tmp_path: Path) -> None:
    with Trivet.open(path, embedder="none", background=False) as memory:
        ids = [memory.remember(f"number {number}").id for number in range(2)]
        to_files(memory, tmp_path / "files")
        ingest(memory, tmp_path / "files")
        next((tmp_path / "files").rglob("number-0*.md")).unlink()
        assert ingest(memory, tmp_path / "files").forgotten == 1
        assert memory.get(ids[0]).state == "deleted"
