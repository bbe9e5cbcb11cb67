"""Memories as files: what is written is what is read back, whatever is in it; edits go both ways."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from support.command_line import process
from trivet import Trivet
from trivet.sources.files import ingest
from trivet.sources.files.mirror import Mirrored, mirror
from trivet.types import Memory

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=60)
AWKWARD = st.sampled_from(
    [
        "---\nnot: front matter\n---\n",
        "\n---\n",
        "a\r\nb\r",
        " led\n",
        "tail\n\n",
        "# H\n\n## I\n",
        "- [ ] x",
        "\x85",
        "…",
    ]
)
CONTENT = (TEXT | AWKWARD | st.tuples(TEXT, AWKWARD, TEXT).map("".join)).filter(lambda text: text.strip())
WORDS = st.lists(TEXT.filter(lambda text: text.strip()), max_size=3, unique=True).map(tuple)
MEMORIES = st.fixed_dictionaries(
    {"content": CONTENT},
    optional={
        "title": TEXT,
        "category": st.sampled_from(["facts", "people"]),
        "tags": WORDS,
        "expanded_keywords": WORDS,
        "importance": st.floats(0, 1),
        "confidence": st.floats(0, 1),
        "scope": st.sampled_from(["a/b", "..", ".git/node_modules", "x"]),
        "source": TEXT.filter(lambda text: text.strip()),
        "created_at": st.sampled_from(["2020-02-29T12:00:00.123456Z", "1999-01-01"]),
        "valid_from": st.just("2001-01-01"),
        "valid_to": st.just("2031-01-01"),
        "sensitive": st.booleans(),
    },
)


def to_files(memory: Trivet, folder: Path) -> Mirrored:
    return mirror(memory.export(include_sensitive=True), folder, lambda file, text: _write(file, text))


def _write(file: Path, text: str) -> None:
    file.write_bytes(text.encode())


def held(memory: Trivet) -> dict[str, Memory]:
    page = memory.list(limit=1000, reveal=True, state=["active", "archived", "superseded"])
    blank: dict[str, Any] = {"updated_at": "", "revision": 0}
    return {one.id: msgspec.structs.replace(one, **blank) for one in page.memories}


@settings(max_examples=40)
@given(st.lists(MEMORIES, min_size=1, max_size=5))
def test_what_is_written_is_read_back(memories: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Trivet.open(folder / "one.db", embedder="none", background=False, secrets="off") as one:
            ids = [one.remember(**memory).id for memory in memories]
            one.edit(ids[0], state="archived")
            if len(ids) > 2:
                one.link(ids[1], "supersedes", ids[2])
                one.link(ids[1], "see-also", ids[0])
            to_files(one, folder / "files")
            again = to_files(one, folder / "files")
            assert (again.written, again.removed, again.left) == (0, 0, ())
            assert not [file for file in folder.rglob("*.md") if (folder / "files") not in file.parents]
            with Trivet.open(folder / "two.db", embedder="none", background=False, secrets="off") as two:
                done = ingest(two, folder / "files")
                assert done.problems == ()
                assert held(two) == held(one)
                links = [
                    {(link.kind, link.source, link.target) for link in store.links(ids[1 % len(ids)])}
                    for store in (one, two)
                ]
                assert links[0] == links[1]
                assert not ingest(one, folder / "files").changed  # nothing new to the store they came from


def test_edits_go_both_ways_and_are_never_overwritten(path: Path, tmp_path: Path) -> None:
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
        assert (done.left, done.written) == ((), 1)  # as we write it, again
        memory.edit(id, title="Harbour")
        to_files(memory, folder)
        assert [one.name[:7] for one in folder.rglob("*.md")] == ["harbour"]
        (folder / "mine.md").write_text("my own note")
        to_files(memory, folder)
        assert (folder / "mine.md").read_text() == "my own note"


def test_a_deleted_mirror_is_forgotten(path: Path, tmp_path: Path) -> None:
    with Trivet.open(path, embedder="none", background=False) as memory:
        ids = [memory.remember(f"number {number}").id for number in range(2)]
        to_files(memory, tmp_path / "files")
        ingest(memory, tmp_path / "files")
        next((tmp_path / "files").rglob("number-0*.md")).unlink()
        assert ingest(memory, tmp_path / "files").forgotten == 1
        assert memory.get(ids[0]).state == "deleted"


def test_the_command(path: Path, tmp_path: Path) -> None:
    with Trivet.open(path, embedder="none", background=False) as memory:
        memory.remember("in the clear")
        memory.remember("a hidden thing", sensitive=True)
    folder = str(tmp_path / "files")
    done = process("export", "--markdown", folder, "--json", TRIVET_PATH=str(path), TRIVET_EMBEDDER="none")
    assert (done.status, done.json()["written"]) == (0, 1)
    files = list((tmp_path / "files").rglob("*.md"))
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600]
    assert "hidden" not in files[0].read_text()
    both = process("export", "--markdown", folder, "--output", "x", TRIVET_PATH=str(path), TRIVET_EMBEDDER="none")
    assert both.status == 2
